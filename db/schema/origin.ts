import { table } from "./table.ts";

/** The one row says what this database mirrors, so that no start mixes two upstreams in it. */
export const origin = table("origin", {
  singleton: "boolean",
  /** The REST address of upstream, or "simulator". */
  upstream: "text",
  claimed_at: "timestamptz",
});

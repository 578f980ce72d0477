import { table } from "./table.ts";

/** One row is one ordered set of keys in which upstream was seen to embed a shared resource in another. */
export const shapes = table("shapes", {
  /** A hash of the keys. */
  id: "text",
  keys: "text",
});

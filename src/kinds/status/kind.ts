import type { Json } from "../../json.ts";
import { resource } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { commitStatuses } from "./table.ts";

export const status = resource("status", commitStatuses, {
  right: "statuses",
  part: "checks",
  columns: ({ url, creator }) => ({ sha: shaInAddress(url), creator_id: referenceId(creator) }),
  // Upstream shows statuses by their commit alone, and never changes one.
  upstream: {},
  needed: ["url", "context", "state", "created_at", "updated_at"],
});

/** `…/statuses/6dcb09b` → `6dcb09b`: upstream names the commit of a status by address alone. */
function shaInAddress(address: Json | undefined): string | null {
  return (typeof address === "string" && /\/statuses\/([0-9a-f]+)$/.exec(address)?.[1]) || null;
}

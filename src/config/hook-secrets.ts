import { createHmac } from "node:crypto";

/** Whose hook it is, in the words of the headers that upstream sends with each delivery; "integration" is an App. */
export interface HookTarget {
  type: "repository" | "organization" | "integration";
  /** Upstream's id of it. */
  id: number;
}

/**
 * The secret of the target's own hooks. It is made of WEBHOOK_SECRET, which no hook is given. A hook's secret can sign
 * for its target, and says nothing of any other's. It needs no hook id, which upstream tells only afterwards.
 */
export function hookSecret(webhookSecret: string, { type, id }: HookTarget): string {
  return createHmac("sha256", webhookSecret).update(`tain hook ${type} ${id}`).digest("hex");
}

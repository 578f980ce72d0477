import { createHmac } from "node:crypto";

/**
 * What a hook belongs to. Upstream calls it the hook's installation target. The types are those of upstream's header
 * `X-GitHub-Hook-Installation-Target-Type`; "integration" means an App.
 */
export interface HookHolder {
  type: "repository" | "organization" | "integration";
  /** Upstream's id of the repository, organisation or App. */
  id: number;
}

/**
 * The secret of all hooks of one holder, derived from WEBHOOK_SECRET. A stolen hook secret can forge deliveries of that
 * holder only: nobody can compute WEBHOOK_SECRET, or another holder's secret, from it. The hook's own id is not used,
 * since upstream gives the id only after the hook was made with its secret.
 */
export function hookSecret(webhookSecret: string, { type, id }: HookHolder): string {
  return createHmac("sha256", webhookSecret).update(`tain hook ${type} ${id}`).digest("hex");
}

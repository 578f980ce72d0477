import type { Kind } from "../../kinds/contract/kind.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../../mirror/store/observation.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import type { ReadAnswer as UpstreamAnswer } from "../../upstream/protocol/upstream.ts";
import type { ApiContext } from "../call/call.ts";

/** Merges what upstream showed the mirror: one resource or a list of them. The validator is kept with it. */
export async function storeShown(
  { db, config }: Pick<ApiContext, "db" | "config">,
  kind: Kind,
  { body, seenAt, validator }: Pick<Extract<UpstreamAnswer, { kind: "ok" }>, "body" | "seenAt" | "validator">,
  repository?: Sighting["repository"],
): Promise<void> {
  const isSingle = !Array.isArray(body) && ["repository", "issue", "pull_request"].includes(kind);
  const at = { api: config.upstreamUrl, seenAt, read: true, isSingle, ...(repository ? { repository } : {}) };
  const observed = joinObserved((Array.isArray(body) ? body : [body]).map((one) => observe(kind, one, at)));
  await db.transaction(async (tx) => {
    const merged = await mergeObserved(tx, observed);
    // A validator says that the mirror has the page. If a newer delivery contradicts the page, the mirror does not have
    // it.
    if (validator && merged.every(({ outcome }) => outcome !== "conflict")) await saveValidator(tx, validator);
  });
}

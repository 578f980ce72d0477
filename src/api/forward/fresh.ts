import type { Kind } from "../../kinds/contract/kind.ts";
import { isSafePath } from "../../upstream/protocol/paths.ts";
import type { Answer, RepositoryCall } from "../call/call.ts";
import { ShareSpentFault } from "../callers/upstream-for-callers.ts";
import { ApiFault } from "../dialect/fault.ts";
import { shownByUpstream } from "./as-caller.ts";
import { storeShown } from "./store-shown.ts";

/** The kind of resource that an address below a repository shows. */
const SHOWN_KINDS: readonly [RegExp, Kind][] = [
  [/^$/, "repository"],
  [/^\/issues(\/\d+)?$/, "issue"],
  [/^\/issues\/(\d+\/comments|comments(\/\d+)?)$/, "issue_comment"],
  [/^\/pulls(\/\d+)?$/, "pull_request"],
  [/^\/pulls\/(\d+\/comments|comments(\/\d+)?|\d+\/reviews\/\d+\/comments)$/, "review_comment"],
  [/^\/pulls\/\d+\/reviews(\/\d+)?$/, "review"],
  [/^(\/issues\/\d+|\/milestones\/\d+)?\/labels$|^\/labels\/.+$/, "label"],
  [/^\/milestones(\/\d+)?$/, "milestone"],
];

const ELSEWHERE = "this process reads from a replica alone, and those that ask upstream cannot be reached";

type Refreshed = { confirmedAt: Date } | { notFresh: string } | { shown: Answer };

/**
 * Has upstream say how things are now. Callers with a token of upstream's are shown upstream's answer. It may be for
 * them alone, so nothing of it is kept. For all others the mirror asks for the resources that the call is about to
 * show, conditionally, and merges the answer. A row that a list lacks is left to the next audit. Answers when upstream
 * confirmed the resources, or why it could not: then the mirror's own state is the answer.
 */
export async function refreshShown(call: RepositoryCall, rest: string): Promise<Refreshed> {
  const { ctx, repository, query, caller } = call;
  if (ctx.readDb.isReadOnly) return { notFresh: ELSEWHERE };
  const path = `/repositories/${repository.id}${rest}${query.size > 0 ? `?${query}` : ""}`;
  if (!isSafePath(path)) return { notFresh: "its name cannot be sent to upstream as a path" };
  try {
    if (caller.kind === "user" && caller.by.of === "upstream") return await shownByUpstream(call, caller.by, path);
    const kind = SHOWN_KINDS.find(([form]) => form.test(rest))?.[1];
    if (kind === undefined) return { notFresh: "this answer cannot be refreshed by itself" };
    const answer = await ctx.upstream.get(caller, path, { conditional: true });
    switch (answer.kind) {
      case "ok":
        await storeShown(ctx, kind, answer, repository);
        return { confirmedAt: answer.seenAt };
      case "unchanged":
        return { confirmedAt: answer.seenAt };
      case "moved":
        return { notFresh: "upstream says that it has moved" };
      case "missing":
        return { notFresh: `upstream answers ${answer.status}` };
      default:
        return answer satisfies never;
    }
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error instanceof ShareSpentFault) return { notFresh: error.message };
    ctx.log.warn({ err: error.cause, requestId: call.requestId, path }, "A fresh read for a caller failed");
    return { notFresh: error.message };
  }
}

import { type Fields, parseStored } from "../../json.ts";
import { findPull, findPulls, type PullRow } from "../../mirror/read/pulls.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showFields, showOne } from "../call/view.ts";
import { ApiFault, notFound } from "../dialect/fault.ts";
import { choice, sentChoice, sentDirection } from "../dialect/protocol.ts";
import { shownToMirror } from "../forward/mirror-reads.ts";
import { askedPage, numberedPage, pageDb, smallNumberParam } from "./page.ts";

export async function listPulls(call: RepositoryCall): Promise<Answer> {
  const { query, repository } = call;
  const state = choice(query, "state", ["open", "closed", "all"]);
  const sort = sentChoice(query, "sort", ["created", "updated", "popularity", "long-running"], "created");
  const head = query.get("head");
  const base = query.get("base") || undefined;
  const { rows, total } = await findPulls(
    // Few are open, and an index has these. None has them in the order of their comments.
    pageDb(call, { isFiltered: sort === "popularity" || (state !== "open" && (base !== undefined || head !== null)) }),
    repository.id,
    {
      state,
      base,
      // The service does not filter by a head that names no user.
      head: head?.includes(":") ? head : undefined,
    },
    {
      // The service was seen to order `long-running` by creation, and to leave nothing out, whatever its docs say.
      sort: sort === null || sort === "long-running" ? "created" : sort,
      direction: sentDirection(query, "desc") ?? (sort === null ? "desc" : "asc"),
      ...askedPage(query),
    },
  );
  const documents = rows.map(({ document, body }) => ({ repositoryId: repository.id, document, body }));
  return numberedPage(call, documents, total);
}

export async function getPull(call: RepositoryCall): Promise<Answer> {
  if (call.media.patch) {
    if (call.ctx.config.forwarding === "all")
      return await shownToMirror(call, call.repository, `/pulls/${call.params.number}`);
    throw new ApiFault(406, `This mirror holds no commits, and so serves no ${call.media.patch} of a pull request`);
  }
  const { document, detail, body, updatedAt } = await requirePull(call);
  const shown = await showOne(call, { repositoryId: call.repository.id, document, detail, body });
  return ok(shown, { lastModified: updatedAt });
}

/** Answers 204 if the pull request was merged, 404 if not. */
export async function checkMerged(call: RepositoryCall): Promise<Answer> {
  const { document } = await requirePull(call);
  const { merged_at: mergedAt } = parseStored<Fields>(document);
  if (!mergedAt) throw notFound();
  return { status: 204, body: null };
}

/** The people and teams who are asked for a review, as the pull request says. */
export async function getRequestedReviewers(call: RepositoryCall): Promise<Answer> {
  const { document, body } = await requirePull(call);
  const shown = await showFields(call, { repositoryId: call.repository.id, document, body });
  const { requested_reviewers: users, requested_teams: teams } = shown;
  return ok(JSON.stringify({ users: users ?? [], teams: teams ?? [] }));
}

/** The pull request that is asked for. @throws ApiFault 404 */
export async function requirePull({ ctx, repository, params }: RepositoryCall): Promise<PullRow> {
  const number = smallNumberParam(params.number);
  const pull = number === null ? null : await findPull(ctx.db, repository.id, number);
  if (!pull) throw notFound();
  return pull;
}

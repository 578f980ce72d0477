import { headerText } from "../../http/reply.ts";
import { type Fields, objectOf, parseStored, rowsOf } from "../../json.ts";
import {
  findDetailedCommit,
  findHistory,
  findHistoryPage,
  findListedCommit,
  findPullsOfCommits,
} from "../../mirror/read/history.ts";
import { findPull } from "../../mirror/read/pulls.ts";
import { findDefaultBranch, findRefs } from "../../mirror/read/refs.ts";
import { type RefName, refNameOf } from "../../mirror/store/refs.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showList, showOne } from "../call/view.ts";
import { requireRights } from "../callers/permissions.ts";
import { notHeld, unread } from "../dialect/fault.ts";
import { askedPage, numberedPage } from "./page.ts";

const SHA = /^[0-9a-f]{40}$/;
/** As the service writes times. It is not known what it makes of others. */
const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?$/;

/** The history of a branch, a tag or a commit. Of a filter by path or person upstream alone knows the result. */
export async function listCommits(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, query } = call;
  if (["path", "author", "committer"].some((name) => query.get(name))) throw notHeld();
  const part = {
    repositoryId: repository.id,
    sha: await shaNamed(call, query.get("sha") || null),
    since: momentOf(query.get("since")),
    until: momentOf(query.get("until")),
  };
  const found = await findHistory(ctx.db, part);
  if (!found) throw unread();
  const { offset, limit } = askedPage(query);
  if (offset + limit > found.held && found.held < found.total) throw notHeld();
  const rows = await findHistoryPage(ctx.db, { ...part, from: found.from }, { offset, limit });
  return await numberedPage(call, rows, found.total);
}

/** A single commit with its files, of which there are more pages than one only where upstream is asked. */
export async function getCommit(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params, query, headers, media } = call;
  const isOtherForm = media.patch !== null || /\.sha\b/.test(headerText(headers.accept));
  if (isOtherForm || query.has("page") || query.has("per_page")) throw notHeld();
  const found = await findDetailedCommit(ctx.db, {
    repositoryId: repository.id,
    sha: await shaNamed(call, params.ref ?? ""),
  });
  if (!found) throw notHeld();
  return ok(await showOne(call, found));
}

/** A commit as an object of Git, which lists of commits show with other addresses. */
export async function getGitCommit(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const { sha = "" } = params;
  const found = SHA.test(sha) ? await findListedCommit(ctx.db, { repositoryId: repository.id, sha }) : null;
  if (!found) throw notHeld();
  const { node_id, html_url, commit, parents } = parseStored<Fields>(found.document);
  const { url, author, committer, tree, message, verification } = objectOf(commit);
  const shown = {
    ...{ sha, node_id, url, html_url, author, committer, tree, message },
    parents: rowsOf(parents).map((one) => ({ ...one, url: `\u0001/git/commits/${one.sha}` })),
    verification,
  };
  if (Object.values(shown).includes(undefined)) throw notHeld();
  return ok(await showOne(call, { repositoryId: repository.id, document: JSON.stringify(shown) }));
}

/** The pull request that brought a commit, in a list. */
export async function listPullsOfCommit(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params, query } = call;
  requireRights(call, ["pulls", "contents"]);
  const { ref: sha = "" } = params;
  const { page } = askedPage(query);
  if (!SHA.test(sha) || page > 1) throw notHeld();
  // All pull requests that are younger than the commit are looked at.
  const [number] = await findPullsOfCommits(call.searchDb, [{ repositoryId: repository.id, sha }]);
  if (number === undefined) throw notHeld();
  const found = number === null ? null : await findPull(ctx.db, repository.id, number);
  if (number !== null && !found) throw notHeld();
  return ok(
    await showList(call, found ? [{ repositoryId: repository.id, document: found.document, body: found.body }] : []),
  );
}

/** @throws NotHeldFault */
function momentOf(text: string | null): Date | null {
  if (!text) return null;
  const moment = TIME.test(text) ? new Date(text) : null;
  if (moment === null || Number.isNaN(moment.getTime())) throw notHeld();
  return moment;
}

/**
 * The commit that a name leads to; null: the default branch. A name that is both a branch's and a tag's is upstream's to
 * resolve. @throws NotHeldFault
 */
export async function shaNamed(
  { ctx, repository }: Pick<RepositoryCall, "ctx" | "repository">,
  name: string | null,
): Promise<string> {
  if (name !== null && SHA.test(name)) return name;
  const branch = name ?? (await findDefaultBranch(ctx.db, repository.id));
  if (branch === null) throw notHeld();
  const full = refNameOf(branch.replace(/^(?=(heads|tags)\/)/, "refs/"));
  const names: RefName[] = full ? [full] : [{ kind: "heads", name: branch }];
  if (name !== null && !full) names.push({ kind: "tags", name: branch });
  const found = await findRefs(
    ctx.db,
    names.map((one) => ({ repositoryId: repository.id, ...one })),
  );
  if (found.includes(undefined)) throw unread();
  const [ref, another] = found.filter((one) => one != null);
  if (!ref || another || ref.commitSha === null) throw notHeld();
  return ref.commitSha;
}

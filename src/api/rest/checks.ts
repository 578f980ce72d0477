import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import {
  type CheckedHead,
  findBranchHead,
  findCheck,
  findCheckedHeads,
  findCheckRuns,
  findCheckSuites,
  findRollups,
  findStatuses,
} from "../../mirror/read/checks.ts";
import { findRepositoryDocument } from "../../mirror/read/repositories.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showAll, showFields, showOne } from "../call/view.ts";
import { joined } from "../dialect/elements.ts";
import { type NotHeldFault, notHeld, unread } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { choice } from "../dialect/protocol.ts";
import { shaNamed } from "./commits.ts";
import { askedPage, countedPage, numberedPage, numberParam } from "./page.ts";

type Held = Exclude<keyof CheckedHead, "sha">;

export async function listCheckRuns(call: RepositoryCall): Promise<Answer> {
  const { sha } = await requireHead(call, await shaOf(call), "runs");
  return await showRuns(call, { sha });
}

export async function listSuiteRuns(call: RepositoryCall): Promise<Answer> {
  const { id, sha } = await requireCheck(call, "check_suites");
  await requireHead(call, sha, "runs", notHeld);
  return await showRuns(call, { suiteId: id });
}

async function showRuns(call: RepositoryCall, of: { sha: string } | { suiteId: number }): Promise<Answer> {
  const { ctx, query, repository } = call;
  const rows = await findCheckRuns(ctx.db, repository.id, of, {
    name: query.get("check_name"),
    status: (["queued", "in_progress", "completed"] as const).find((one) => one === query.get("status")) ?? null,
    filter: choice(query, "filter", ["latest", "all"]),
    appId: numberParam(query.get("app_id") ?? undefined),
  });
  return await pageOf(call, "check_runs", rows);
}

export async function listCheckSuites(call: RepositoryCall): Promise<Answer> {
  const { ctx, query, repository } = call;
  const { sha } = await requireHead(call, await shaOf(call), "suites");
  const rows = await findCheckSuites(ctx.db, repository.id, sha, {
    appId: numberParam(query.get("app_id") ?? undefined),
    runName: query.get("check_name"),
  });
  return await pageOf(call, "check_suites", rows);
}

export async function getCheckRun(call: RepositoryCall): Promise<Answer> {
  return await showCheck(call, "check_runs", "runs");
}

/** The mirror knows how many annotations a run has, and so only the empty list. A run that goes on gets more without an event. */
export async function listAnnotations(call: RepositoryCall): Promise<Answer> {
  const { sha, document } = await requireCheck(call, "check_runs");
  await requireHead(call, sha, "runs", notHeld);
  const { status, output } = parseStored<Fields>(document);
  if (status !== "completed" || objectOf(output).annotations_count !== 0) throw notHeld();
  return ok("[]");
}

export async function getCheckSuite(call: RepositoryCall): Promise<Answer> {
  return await showCheck(call, "check_suites", "suites");
}

async function showCheck(call: RepositoryCall, of: "check_runs" | "check_suites", held: Held): Promise<Answer> {
  const { sha, document } = await requireCheck(call, of);
  await requireHead(call, sha, held, notHeld);
  return ok(await showOne(call, { repositoryId: call.repository.id, document }));
}

export async function listStatuses(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, query } = call;
  const { sha } = await requireHead(call, await shaOf(call), "statuses");
  const rows = await findStatuses(ctx.db, repository.id, sha);
  const { offset, limit } = askedPage(query);
  const documents = rows
    .slice(offset, offset + limit)
    .map(({ document }) => ({ repositoryId: repository.id, document }));
  return await numberedPage(call, documents, rows.length);
}

/** The combined status of a commit. Check runs do not count here, whatever the repository uses. */
export async function getCombinedStatus(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, api, query } = call;
  const { sha } = await requireHead(call, await shaOf(call), "statuses");
  const [found] = await findRollups(ctx.db, [{ repositoryId: repository.id, sha }], { withDocuments: true });
  const statuses = found?.statuses ?? [];
  const { page, offset, limit } = askedPage(query);
  const shown = statuses.slice(offset, offset + limit).map(({ document }) => {
    const { creator: _, ...rest } = parseStored<Fields>(document);
    return { repositoryId: repository.id, document: JSON.stringify(rest) };
  });
  const texts = await showAll(call, shown);
  const states = statuses.map(({ state }) => state);
  const link = numberedLink(api + call.path, query, { page, last: Math.ceil(statuses.length / limit) });
  const own = await minimalRepository(call);
  const address = `${api}/repos/${textOf(own.full_name)}`;
  const rest = JSON.stringify({
    sha,
    total_count: statuses.length,
    repository: own,
    commit_url: `${address}/commits/${sha}`,
    url: `${address}/commits/${sha}/status`,
  });
  const frame = {
    before: `{"state":"${combinedState(states)}","statuses":[`,
    between: ",",
    behind: `],${rest.slice(1)}`,
  };
  return ok(await joined(texts, frame, ctx.mirror.pace), { link });
}

/** The combined state, by GitHub's docs, "Get the combined status for a specific reference". Pure. */
function combinedState(states: readonly string[]): "failure" | "pending" | "success" {
  if (states.some((state) => state === "error" || state === "failure")) return "failure";
  return states.length === 0 || states.includes("pending") ? "pending" : "success";
}

/** The keys that `minimal-repository` requires in GitHub's OpenAPI. */
const MINIMAL_KEYS =
  `id node_id name full_name private owner html_url description fork url forks_url keys_url collaborators_url
  teams_url hooks_url issue_events_url events_url assignees_url branches_url tags_url blobs_url git_tags_url git_refs_url
  trees_url statuses_url languages_url stargazers_url contributors_url subscribers_url subscription_url commits_url
  git_commits_url comments_url issue_comment_url contents_url compare_url merges_url archive_url downloads_url issues_url
  pulls_url milestones_url notifications_url labels_url releases_url deployments_url`.split(/\s+/);

async function minimalRepository(call: RepositoryCall): Promise<Fields> {
  const { id } = call.repository;
  const row = await findRepositoryDocument(call.ctx.db, id);
  if (!row) throw notHeld();
  const whole = await showFields(call, { repositoryId: id, document: row.document });
  return Object.fromEntries(MINIMAL_KEYS.map((key) => [key, whole[key] ?? null]));
}

/** A page of a list, with the list's length beside it. */
async function pageOf(call: RepositoryCall, name: string, rows: readonly { document: string }[]): Promise<Answer> {
  const { query, repository } = call;
  const { limit, offset } = askedPage(query);
  const some = rows.slice(offset, offset + limit).map(({ document }) => ({ repositoryId: repository.id, document }));
  return await countedPage(call, name, some, rows.length);
}

/**
 * The hash of the commit that is asked about. A bare name may be a branch's or a tag's, and without the refs only
 * upstream knows which.
 * @throws NotHeldFault
 */
async function shaOf({ ctx, params, repository }: RepositoryCall): Promise<string> {
  const { ref = "" } = params;
  if (/^[0-9a-f]{40}$/.test(ref)) return ref;
  const [, branch] = /^(?:refs\/)?heads\/(.+)$/.exec(ref) ?? [];
  const sha = branch === undefined ? null : await findBranchHead(ctx.db, repository.id, branch);
  if (sha !== null) return sha;
  if (!repository.mirrors.includes("refs")) throw notHeld();
  return await shaNamed({ ctx, repository }, ref);
}

/**
 * The commit's lists, as the mirror holds them.
 * @param fault the fault to throw. The commit of a single check may no longer be a head. It is not read again then, and
 * the fault is `notHeld`
 * @throws NotHeldFault when the mirror lacks a list of the commit that is asked for
 */
async function requireHead(
  { ctx, repository }: RepositoryCall,
  sha: string,
  held: Held,
  fault: () => NotHeldFault = unread,
): Promise<CheckedHead> {
  const [head] = await findCheckedHeads(ctx.db, [{ repositoryId: repository.id, sha }]);
  if (!head?.[held]) throw fault();
  return head;
}

/** The check run or suite that is asked for. @throws NotHeldFault */
async function requireCheck(
  { ctx, repository, params }: RepositoryCall,
  of: "check_runs" | "check_suites",
): Promise<{ id: number; sha: string; document: string }> {
  const id = numberParam(params.id);
  const found = id === null ? null : await findCheck(ctx.db, of, repository.id, id);
  if (!found) throw notHeld();
  return found;
}

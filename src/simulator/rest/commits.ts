/** Commits, alone, in lists and compared; what `{ref}` in a path means; what pull requests have of them. */

import { commitView, gitCommitView } from "../views/commit.ts";
import { fileViews } from "../views/file.ts";
import { pullSummary } from "../views/pull.ts";
import { repositoryPage, repositoryUrl } from "../views/view.ts";
import { commitOf, history, NO_SHA, pullCommits, pullsBringing, shaNamed } from "../world/commits.ts";
import { filesOfCommit, filesOfPull } from "../world/files.ts";
import type { Repository } from "../world/records.ts";
import type { Commit, FileChange } from "../world/records-code.ts";
import { Refusal } from "../world/refusal.ts";
import { type Answer, notFound, ok, type RepositoryCall, seenPull } from "./call.ts";
import { link, paged, pageNumber, pageSize } from "./pagination.ts";

const COMMITS_OF_A_PULL = 250;
const FILES = 3_000;
const FILES_AT_ONCE = 300;

/** A sha, a branch, `heads/x`, `tags/x`; a repository without branches has no commits at all. */
export function commitNamed(call: RepositoryCall, ref: string): Commit {
  const { world, repository } = call;
  needCommits(repository);
  const sha = shaNamed(world, repository, ref);
  const commit = sha === undefined ? undefined : commitOf(world, repository, sha);
  if (!commit) throw noCommit(ref);
  return commit;
}

export function needCommits(repository: Repository): void {
  if (repository.branches.size === 0) throw new Refusal(409, "Git Repository is empty.");
}

export function noCommit(ref: string): Refusal {
  return new Refusal(422, `No commit found for SHA: ${ref}`);
}

/** The commit with statistics and one page of its files. Everything else is the same on each page. */
export function getCommit(call: RepositoryCall): Answer {
  const { view, repository, query } = call;
  const commit = commitNamed(call, call.params.ref ?? "");
  const accept = [call.headers.accept ?? ""].flat().join();
  if (accept.includes(".sha"))
    return { status: 200, text: { type: "application/vnd.github.sha; charset=utf-8", content: commit.sha } };
  const all = filesOfCommit(commit);
  const isPaged = query.has("page") || query.has("per_page");
  const shown: FileChange[] = isPaged ? [] : all.slice(0, FILES_AT_ONCE);
  const links = isPaged ? paged(call, { rows: all, size: all.length }, (file) => shown.push(file)).links : undefined;
  const sum = (of: (file: FileChange) => number) => all.reduce((total, file) => total + of(file), 0);
  const [additions, deletions] = [sum((file) => file.additions), sum((file) => file.deletions)];
  const body = {
    ...commitView(view, repository, commit),
    stats: { total: additions + deletions, additions, deletions },
    files: fileViews(view, repository, commit.sha, shown),
  };
  return ok(body, { lastModified: commit.committedAt, ...(links ? { links } : {}) });
}

export function getGitCommit(call: RepositoryCall): Answer {
  const { view, repository, world, params } = call;
  needCommits(repository);
  const commit = commitOf(world, repository, params.sha ?? "");
  if (!commit) throw notFound();
  return ok(gitCommitView(view, repository, commit), { lastModified: commit.committedAt });
}

/** Newest first, from a branch, tag or sha, or the default branch. */
export function listCommits(call: RepositoryCall): Answer {
  const { query, repository, world, view } = call;
  needCommits(repository);
  const from = shaNamed(world, repository, query.get("sha") ?? repository.defaultBranch);
  if (from === undefined) throw notFound();
  const path = query.get("path");
  const [since, until] = [secondsOf(query.get("since")), secondsOf(query.get("until"))];
  const author = query.get("author");
  const authorId = author === null ? undefined : (world.userByLogin(author)?.id ?? null);
  const rows = [...history(world, repository, from)].filter(
    (commit) =>
      (since === null || commit.committedAt >= since) &&
      (until === null || commit.committedAt <= until) &&
      (authorId === undefined || (authorId !== null && commit.authorId === authorId)) &&
      (path === null || filesOfCommit(commit).some(({ filename }) => filename.startsWith(path))),
  );
  const first = rows[0];
  const answer = paged(call, { rows, size: rows.length }, (commit) => commitView(view, repository, commit));
  return { ...answer, ...(first ? { lastModified: first.committedAt } : {}) };
}

function secondsOf(text: string | null): number | null {
  const at = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? null : Math.floor(at / 1_000);
}

/** Pull requests that a commit came with: the merged one, or those that still have it. */
export function listPullsOfCommit(call: RepositoryCall): Answer {
  const { repository, world, view } = call;
  const { sha } = commitNamed(call, call.params.ref ?? "");
  const rows = [...pullsBringing(world, repository, sha)];
  return paged(call, { rows, size: rows.length }, (row) => pullSummary(view, row));
}

export function listBranchesAtHead(call: RepositoryCall): Answer {
  const { repository, view } = call;
  const { sha } = commitNamed(call, call.params.ref ?? "");
  const url = `${repositoryUrl(view, repository)}/commits/${sha}`;
  const names = [...repository.branches].filter(([, head]) => head === sha).map(([name]) => name);
  return ok(names.map((name) => ({ name, commit: { sha, url }, protected: false })));
}

/** Oldest first, and never more than 250. */
export function listPullCommits(call: RepositoryCall): Answer {
  const issue = seenPull(call);
  const rows = pullCommits(call.world, issue).slice(0, COMMITS_OF_A_PULL);
  const answer = paged(call, { rows, size: rows.length }, (commit) => commitView(call.view, call.repository, commit));
  return { ...answer, lastModified: issue.updatedAt };
}

export function listPullFiles(call: RepositoryCall): Answer {
  const issue = seenPull(call);
  const rows = filesOfPull(issue).slice(0, FILES);
  const shown: FileChange[] = [];
  const answer = paged(call, { rows, size: rows.length }, (file) => shown.push(file));
  const body = fileViews(call.view, call.repository, issue.pull.head.sha, shown);
  return { ...answer, body, lastModified: issue.updatedAt };
}

/** Chronological. Files stand on the first page alone, and links are not in the order of other lists. */
export function compareCommits(call: RepositoryCall): Answer {
  const { view, repository, world, query } = call;
  const [baseName = "", headName = ""] = (call.params.basehead ?? "").split(/\.\.\.?/);
  const [base, head] = [compared(call, baseName), compared(call, headName)];
  const ofHead = [...history(world, repository, head.sha)];
  const ofBase = [...history(world, repository, base.sha)];
  const [inHead, inBase] = [new Set(ofHead.map(({ sha }) => sha)), new Set(ofBase.map(({ sha }) => sha))];
  const ahead = ofHead.filter(({ sha }) => !inBase.has(sha)).reverse();
  const behind = ofBase.filter(({ sha }) => !inHead.has(sha)).length;
  const mergeBase = ofHead.find(({ sha }) => inBase.has(sha)) ?? base;
  const page = pageNumber(query);
  const isPaged = query.has("page") || query.has("per_page");
  const size = pageSize(query);
  const commits = isPaged ? ahead.slice((page - 1) * size, page * size) : ahead.slice(-COMMITS_OF_A_PULL);
  const status = ahead.length === 0 ? (behind === 0 ? "identical" : "behind") : behind === 0 ? "ahead" : "diverged";
  const at = `${baseName}...${headName}`;
  const url = `${repositoryUrl(view, repository)}/compare/${at}`;
  const web = `${repositoryPage(view, repository)}/compare/${at}`;
  const files = new Map(ahead.flatMap(filesOfCommit).map((file) => [file.filename, file]));
  const body = {
    url,
    html_url: web,
    permalink_url: `${repositoryPage(view, repository)}/compare/${base.sha.slice(0, 7)}...${head.sha.slice(0, 7)}`,
    diff_url: `${web}.diff`,
    patch_url: `${web}.patch`,
    base_commit: commitView(view, repository, base),
    merge_base_commit: commitView(view, repository, mergeBase),
    status,
    ahead_by: ahead.length,
    behind_by: behind,
    total_commits: ahead.length,
    commits: commits.map((commit) => commitView(view, repository, commit)),
    ...(page === 1
      ? { files: fileViews(view, repository, head.sha, [...files.values()].slice(0, FILES_AT_ONCE)) }
      : {}),
  };
  const links = isPaged ? comparedLinks(call, page, Math.max(1, Math.ceil(ahead.length / size))) : [];
  return ok(body, { lastModified: head.committedAt, links });
}

/** Here the last page comes first, and both ends are told on every page. */
function comparedLinks(call: RepositoryCall, page: number, last: number): string[] {
  if (last === 1) return [];
  const at = (number: number, rel: string) => link(call, { page: String(number) }, rel);
  const links = [at(last, "last")];
  if (page < last) links.push(at(page + 1, "next"));
  links.push(at(1, "first"));
  if (page > 1) links.push(at(page - 1, "prev"));
  return links;
}

/** `user:branch` names a branch of a fork; what it has is compared as if it were here. */
function compared(call: RepositoryCall, name: string): Commit {
  const { world, repository } = call;
  const [, login, branch] = /^([^:]+):(.+)$/.exec(name) ?? [];
  if (login === undefined || branch === undefined) {
    const sha = shaNamed(world, repository, name);
    const commit = sha === undefined || sha === NO_SHA ? undefined : commitOf(world, repository, sha);
    if (!commit) throw notFound();
    return commit;
  }
  const owner = world.userByLogin(login)?.id;
  for (const one of world.repositories.values()) {
    const inNetwork = one === repository || one.parentId === repository.id || one.id === repository.parentId;
    const sha = one.ownerId === owner && inNetwork ? one.branches.get(branch) : undefined;
    const commit = sha === undefined ? undefined : (commitOf(world, repository, sha) ?? commitOf(world, one, sha));
    if (commit && call.view.sees(one)) return commit;
  }
  throw notFound();
}

/** Commits and what changed: their authors, their history, the files of pull requests. */

import { commitNodeId, signature, treeOf } from "../views/commit.ts";
import { repositoryPage } from "../views/view.ts";
import { commitOrMade, history, pullCommits, pullsBringing } from "../world/commits.ts";
import { filesOfCommit, filesOfPull } from "../world/files.ts";
import { legacyNodeId } from "../world/node-id.ts";
import type { Issue, PullIssue, Repository } from "../world/records.ts";
import type { FileChange, Commit as Row } from "../world/records-code.ts";
import { actor, type Call, issuePage, pathOf, requireRead } from "./call.ts";
import { rollupOf, statusOf, suitesConnection } from "./checks.ts";
import { arraySource, connection, type PageArguments } from "./connection.ts";
import { pullsSource } from "./issue-lists.ts";
import type { Fields } from "./resolvers.ts";

export interface Commit {
  readonly oid: string;
  readonly repository: Repository;
}

export function commit(oid: string | null, repository: Repository): Commit | null {
  return oid === null ? null : { oid, repository };
}

function rowOf(call: Call, { oid, repository }: Commit): Row {
  return commitOrMade(call.world, repository, oid);
}

function pageOf(call: Call, { oid, repository }: Commit): string {
  return `${repositoryPage(call.view, repository)}/commit/${oid}`;
}

/** Rows that have no number stand in their order. */
function inOrder<Item>(items: readonly Item[]) {
  const places = new Map(items.map((item, at) => [item, at + 1]));
  return arraySource(items, { keyOf: () => null, idOf: (item) => places.get(item) ?? 0 });
}

interface HistoryArguments extends PageArguments {
  readonly author?: { readonly id?: string | null; readonly emails?: readonly string[] | null } | null;
  readonly path?: string | null;
  readonly since?: string | null;
  readonly until?: string | null;
}

function historyOf(call: Call, { oid, repository }: Commit, args: HistoryArguments) {
  const [since, until] = [args.since, args.until].map((text) => (text == null ? null : Date.parse(text) / 1_000));
  const { path, author } = args;
  const authorId =
    author?.id == null ? null : [...call.world.users.values()].find((user) => idOf(call, user) === author.id)?.id;
  const found: Commit[] = [];
  for (const row of history(call.world, repository, oid)) {
    if (since != null && row.committedAt < since) continue;
    if (until != null && row.committedAt > until) continue;
    if (author?.id != null && row.authorId !== authorId) continue;
    if (path != null && !filesOfCommit(row).some(({ filename }) => filename.startsWith(path))) continue;
    found.push({ oid: row.sha, repository });
  }
  return inOrder(found);
}

function idOf(call: Call, user: Parameters<Call["world"]["nodeId"]>[1]): string {
  return call.world.nodeId("User", user, undefined, call.view.nextIds);
}

function lines(files: readonly FileChange[], of: "additions" | "deletions"): number {
  return files.reduce((sum, file) => sum + file[of], 0);
}

export const commitFields: Fields<Commit> = {
  id: (row) => commitNodeId(row.repository, row.oid),
  abbreviatedOid: (row) => row.oid.slice(0, 7),
  commitUrl: (row, _, call) => pageOf(call, row),
  url: (row, _, call) => pageOf(call, row),
  resourcePath: (row, _, call) => pathOf(call, pageOf(call, row)),
  commitResourcePath: (row, _, call) => pathOf(call, pageOf(call, row)),
  treeUrl: (row, _, call) => `${repositoryPage(call.view, row.repository)}/tree/${treeOf(row.oid)}`,
  treeResourcePath: (row, _, call) => `/${call.world.fullName(row.repository)}/tree/${treeOf(row.oid)}`,
  message: (row, _, call) => rowOf(call, row).message,
  messageHeadline: (row, _, call) => rowOf(call, row).message.split("\n")[0],
  messageBody: (row, _, call) => rowOf(call, row).message.split("\n").slice(2).join("\n"),
  authoredDate: (row, _, call) => signature(call.view, null, rowOf(call, row).authoredAt).date,
  committedDate: (row, _, call) => signature(call.view, null, rowOf(call, row).committedAt).date,
  authoredByCommitter: (row, _, call) => rowOf(call, row).authorId === rowOf(call, row).committerId,
  author: (row, _, call) => gitActor(call, rowOf(call, row).authorId, rowOf(call, row).authoredAt),
  authors: (row, args, call, info) => connection(call, info, args, inOrder(authorsOf(call, rowOf(call, row)))),
  committer: (row, _, call) => gitActor(call, rowOf(call, row).committerId, rowOf(call, row).committedAt),
  additions: (row, _, call) => lines(filesOfCommit(rowOf(call, row)), "additions"),
  deletions: (row, _, call) => lines(filesOfCommit(rowOf(call, row)), "deletions"),
  changedFilesIfAvailable: (row, _, call) => filesOfCommit(rowOf(call, row)).length,
  parents: (row, args, call, info) => {
    const parents = (rowOf(call, row).parents ?? []).map((oid) => ({ oid, repository: row.repository }));
    return connection(call, info, args, inOrder(parents));
  },
  history: (row, args, call, info) => connection(call, info, args, historyOf(call, row, args)),
  associatedPullRequests: (row, args, call, info) => {
    requireRead(call, row.repository, "pull_requests");
    const bringing: ReadonlySet<Issue> = pullsBringing(call.world, row.repository, row.oid);
    const source = pullsSource(row.repository, args, (issue) => bringing.has(issue));
    return connection(call, info, args, source);
  },
  status: (row, _, call) => statusOf(call, row),
  statusCheckRollup: (row, _, call) => rollupOf(call, row),
  checkSuites: (row, args, call, info) => suitesConnection(call, info, args, row),
};

/** The author, and after them whom a trailer of the message names. */
function authorsOf(call: Call, { authorId, authoredAt, message }: Row) {
  const first = gitActor(call, authorId, authoredAt);
  const others = [...message.matchAll(/^co-authored-by: *(.+?) *<(.+?)> *$/gim)].map(([, name = "", email = ""]) => ({
    ...first,
    ...{ name, email, user: null, avatarId: 0 },
  }));
  return [first, ...others];
}

export function gitActor(call: Call, userId: number | null, at: number) {
  const { name, email, date } = signature(call.view, userId, at);
  const user = actor(call, userId);
  return { name, email, date, user: user?.type === "User" ? user : null, avatarId: userId ?? 0 };
}

export const gitActorFields: Fields<ReturnType<typeof gitActor>> = {
  avatarUrl: (row, { size }) =>
    `https://avatars.githubusercontent.com/u/${row.avatarId}${size ? `?s=${size}&v=4` : "?v=4"}`,
};

/** A commit in its place in a pull request. */
interface PullCommit {
  readonly pullRequest: PullIssue;
  readonly commit: Commit;
}

export const pullCommitFields: Fields<PullCommit> = {
  id: (row) => legacyNodeId("PullRequestCommit", row.pullRequest.pull.id) + row.commit.oid,
  url: (row, _, call) => `${issuePage(call, row.pullRequest)}/commits/${row.commit.oid}`,
  resourcePath: (row, _, call) => pathOf(call, `${issuePage(call, row.pullRequest)}/commits/${row.commit.oid}`),
};

const CHANGE_TYPES = { added: "ADDED", modified: "MODIFIED", removed: "DELETED", renamed: "RENAMED" } as const;

/** What a pull request has of commits and files. */
export const pullCodeFields: Fields<PullIssue> = {
  commits: (row, args, call, info) => {
    const commits = pullCommits(call.world, row).map(({ sha }) => ({
      pullRequest: row,
      commit: { oid: sha, repository: row.repository },
    }));
    return connection(call, info, args, inOrder(commits));
  },
  files: (row, args, call, info) => {
    const files = filesOfPull(row).map((file) => ({
      ...file,
      path: file.filename,
      changeType: CHANGE_TYPES[file.status],
    }));
    return connection(call, info, args, inOrder(files));
  },
  statusCheckRollup: (row, _, call) => rollupOf(call, { oid: row.pull.head.sha, repository: row.repository }),
};

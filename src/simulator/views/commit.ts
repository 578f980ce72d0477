/** Commits as REST shows them. */
import { hashOf } from "../world/commits.ts";
import type { Repository, User } from "../world/records.ts";
import type { Commit } from "../world/records-code.ts";
import { simpleUser } from "./user.ts";
import { type Json, repositoryPage, repositoryUrl, time, type View } from "./view.ts";

const UNSIGNED = { verified: false, reason: "unsigned", signature: null, payload: null, verified_at: null };

export function treeOf(sha: string): string {
  return hashOf(`tree ${sha}`);
}

/** commit, as lists have it: without statistics and files. */
export function commitView(view: View, repository: Repository, commit: Commit): Json {
  const url = repositoryUrl(view, repository);
  const page = repositoryPage(view, repository);
  const { sha } = commit;
  return {
    sha,
    node_id: commitNodeId(repository, sha),
    commit: {
      author: signature(view, commit.authorId, commit.authoredAt),
      committer: signature(view, commit.committerId, commit.committedAt),
      message: commit.message,
      tree: { sha: treeOf(sha), url: `${url}/git/trees/${treeOf(sha)}` },
      url: `${url}/git/commits/${sha}`,
      comment_count: 0,
      verification: UNSIGNED,
    },
    url: `${url}/commits/${sha}`,
    html_url: `${page}/commit/${sha}`,
    comments_url: `${url}/commits/${sha}/comments`,
    author: account(view, commit.authorId),
    committer: account(view, commit.committerId),
    parents: (commit.parents ?? []).map((parent) => ({
      sha: parent,
      url: `${url}/commits/${parent}`,
      html_url: `${page}/commit/${parent}`,
    })),
  };
}

/** git-commit: the object itself. */
export function gitCommitView(view: View, repository: Repository, commit: Commit): Json {
  const url = repositoryUrl(view, repository);
  const page = repositoryPage(view, repository);
  const { sha } = commit;
  return {
    sha,
    node_id: commitNodeId(repository, sha),
    url: `${url}/git/commits/${sha}`,
    html_url: `${page}/commit/${sha}`,
    author: signature(view, commit.authorId, commit.authoredAt),
    committer: signature(view, commit.committerId, commit.committedAt),
    tree: { sha: treeOf(sha), url: `${url}/git/trees/${treeOf(sha)}` },
    message: commit.message,
    parents: (commit.parents ?? []).map((parent) => ({
      sha: parent,
      url: `${url}/git/commits/${parent}`,
      html_url: `${page}/commit/${parent}`,
    })),
    verification: UNSIGNED,
  };
}

/** simple-commit, as suites and pushes have it. */
export function headCommit(view: View, commit: Commit) {
  const { date: _left, ...author } = signature(view, commit.authorId, commit.authoredAt);
  const { date: _out, ...committer } = signature(view, commit.committerId, commit.committedAt);
  return {
    id: commit.sha,
    tree_id: treeOf(commit.sha),
    message: commit.message,
    timestamp: time(commit.committedAt),
    author,
    committer,
  };
}

/** Commits have no number: their ids hold the sha. */
export function commitNodeId(repository: Repository, sha: string): string {
  return `C_${Buffer.from(`${repository.id}:${sha}`).toString("base64url")}`;
}

export function signature(view: View, userId: number | null, at: number) {
  const user = userId === null ? undefined : view.world.users.get(userId);
  return {
    name: user ? nameOf(user) : "Somebody",
    email: user ? `${user.id}+${user.login}@users.noreply.github.com` : "somebody@example.invalid",
    date: time(at),
  };
}

function nameOf(user: User): string {
  return user.name ?? user.login;
}

/** An account that is gone is null here: no ghost. */
function account(view: View, userId: number | null): Json | null {
  const user = userId === null ? undefined : view.world.users.get(userId);
  return user && !user.deleted ? simpleUser(view, user.id) : null;
}

import { broughtCommit, history, mergedCommit, NO_SHA, pushedCommit, settledLength } from "../world/commits.ts";
import type { NewPull } from "../world/new-rows.ts";
import type { Issue, PullEnd, PullIssue, Repository } from "../world/records.ts";
import { checkBody, checkTitle, invalid, Refusal } from "../world/refusal.ts";
import { isPull, type World } from "../world/world.ts";
import { editIssue, tellIssue } from "./issues.ts";

/** Makes a branch, or moves it: what a `git push` does. Tells `push`. Open pull requests from it follow. */
export function pushBranch(
  world: World,
  by: number,
  repository: Repository,
  ref: string,
  sha = world.newSha(),
  forced = false,
): string {
  const before = repository.branches.get(ref) ?? NO_SHA;
  const isFirst = repository.branches.size === 0;
  pushedCommit(world, by, repository, { ref, before, sha });
  setBranch(world, repository, ref, sha);
  const push = { ref: `refs/heads/${ref}`, before, after: sha, forced };
  if (before === NO_SHA && !isFirst)
    world.emit({ event: "create", action: null, repository, senderId: by, ref: { name: ref, type: "branch" } });
  world.emit({ event: "push", action: null, repository, senderId: by, push });
  for (const candidate of openPullsFrom(world, repository, ref)) synchronize(world, by, candidate, sha);
  return sha;
}

/** Its branch is gone: what was proposed from it is closed. */
export function closePullsFrom(world: World, by: number, repository: Repository, ref: string): void {
  for (const open of openPullsFrom(world, repository, ref)) editIssue(world, by, open, { state: "closed" });
}

function setBranch(world: World, repository: Repository, ref: string, sha: string): void {
  world.changing(repository);
  repository.branches.set(ref, sha);
  repository.pushedAt = world.now();
}

function openPullsFrom(world: World, repository: Repository, ref: string): PullIssue[] {
  const found: PullIssue[] = [];
  for (const base of [
    repository,
    ...(repository.parentId === null ? [] : [world.repositories.get(repository.parentId)]),
  ]) {
    if (!base || base.openPulls === 0) continue;
    for (const row of base.rows.pullsByCreated.ascending()) {
      if (
        row.state === "open" &&
        isPull(row) &&
        row.pull.head.ref === ref &&
        row.pull.head.repositoryId === repository.id
      )
        found.push(row);
    }
  }
  return found;
}

/** What a pull request is made of besides its words. */
export interface PullSource {
  readonly headRepository: Repository;
  readonly headRef: string;
  readonly baseRef: string;
  readonly draft?: boolean;
  readonly maintainerCanModify?: boolean;
}

export interface PullInput extends PullSource {
  readonly repository: Repository;
  readonly title: string;
  readonly body?: string | null;
}

export function createPull(world: World, by: number, input: PullInput): PullIssue {
  const { repository, title, body = null } = input;
  checkTitle("PullRequest", title);
  checkBody("PullRequest", body);
  const pull = newPull(world, repository, input);
  world.changing(repository);
  const issue = world.addIssue({ repository, title, body, authorId: by, pull });
  tellIssue(world, by, issue, "opened");
  return issue;
}

/** The issue becomes a pull request: same number, same words, same comments. */
export function convertToPull(world: World, by: number, issue: Issue, source: PullSource): PullIssue {
  if (issue.pull || issue.state === "closed") {
    throw invalid({ resource: "PullRequest", field: "issue", code: "invalid", value: issue.number });
  }
  const pull = newPull(world, issue.repository, source);
  world.changing(issue.repository);
  world.changing(issue);
  const converted = world.becomePull(issue, pull);
  world.bump(converted);
  tellIssue(world, by, converted, "opened");
  return converted;
}

/**
 * Refuses a pull request without a head branch, without a base branch, without commits between them, or proposed
 * already.
 */
function newPull(world: World, repository: Repository, source: PullSource): NewPull {
  const { headRepository, headRef, baseRef } = source;
  const baseSha = repository.branches.get(baseRef);
  if (!baseSha) {
    const message = `Proposed base branch '${baseRef}' was not found`;
    throw invalid({ message, resource: "PullRequest", field: "base", code: "invalid" });
  }
  const headSha = headRepository.branches.get(headRef);
  if (!headSha) throw invalid({ resource: "PullRequest", field: "head", code: "invalid" });
  const head = pullEnd(world, headRepository, headRef, headSha);
  if (headSha === baseSha) {
    const message = `No commits between ${baseRef} and ${headRepository === repository ? headRef : head.label}`;
    throw invalid({ resource: "PullRequest", code: "custom", message });
  }
  for (const open of openPullsFrom(world, headRepository, headRef)) {
    if (open.repository !== repository || open.pull.base.ref !== baseRef) continue;
    const message = `A pull request already exists for ${head.label}.`;
    throw invalid({ resource: "PullRequest", code: "custom", message });
  }
  const commits = world.random.int(1, 5);
  return {
    head,
    base: pullEnd(world, repository, baseRef, baseSha),
    draft: source.draft ?? false,
    maintainerCanModify: source.maintainerCanModify ?? headRepository !== repository,
    commits: Math.max(commits, settledLength(world, headRepository, headSha, baseSha)),
    additions: world.random.int(1, 400),
    deletions: world.random.int(0, 200),
    changedFiles: world.random.int(1, 20),
  };
}

function pullEnd(world: World, repository: Repository, ref: string, sha: string): PullEnd {
  const owner = world.user(repository.ownerId);
  return { ref, sha, label: `${owner.login}:${ref}`, userId: owner.id, repositoryId: repository.id };
}

export interface PullEdit {
  readonly title?: string;
  readonly body?: string | null;
  readonly state?: "open" | "closed";
  readonly baseRef?: string;
  readonly maintainerCanModify?: boolean;
}

export function editPull(world: World, by: number, issue: PullIssue, edit: PullEdit): PullIssue {
  const { repository, pull } = issue;
  const changes: Record<string, unknown> = {};
  if (edit.baseRef !== undefined && edit.baseRef !== pull.base.ref) {
    const sha = repository.branches.get(edit.baseRef);
    if (!sha) {
      const message = `Proposed base branch '${edit.baseRef}' was not found`;
      throw invalid({ message, resource: "PullRequest", field: "base", code: "invalid" });
    }
    if (issue.state === "closed") {
      const message = "Cannot change the base branch of a closed pull request.";
      throw invalid({ message, resource: "PullRequest", field: "base", code: "invalid" });
    }
    changes.base = { ref: { from: pull.base.ref }, sha: { from: pull.base.sha } };
    world.changing(issue);
    pull.base = {
      ...pull.base,
      ref: edit.baseRef,
      sha,
      label: `${world.user(repository.ownerId).login}:${edit.baseRef}`,
    };
    forgetMergeable(pull);
    world.bump(issue);
  }
  if (edit.maintainerCanModify !== undefined && edit.maintainerCanModify !== pull.maintainerCanModify) {
    world.changing(issue);
    pull.maintainerCanModify = edit.maintainerCanModify;
    world.bump(issue);
  }
  if (Object.keys(changes).length > 0) tellIssue(world, by, issue, "edited", { changes });
  const { baseRef: _base, maintainerCanModify: _modify, ...rest } = edit;
  editIssue(world, by, issue, rest);
  return issue;
}

/** New commits on the head branch: tells `push` (where the branch is) and `synchronize`. */
export function pushToPull(world: World, by: number, issue: PullIssue, sha = world.newSha()): void {
  const { head } = issue.pull;
  const repository = head.repositoryId === null ? undefined : world.repositories.get(head.repositoryId);
  if (!repository) throw new Refusal(422, "The head repository of this pull request is gone");
  if (issue.state === "closed") throw new Refusal(422, "The pull request is closed");
  pushBranch(world, by, repository, head.ref, sha);
  // The branch's own walk finds pull requests in the repository and its parent; elsewhere it is done here.
  if (issue.pull.head.sha !== sha) synchronize(world, by, issue, sha);
}

function synchronize(world: World, by: number, issue: PullIssue, sha: string): void {
  const { pull } = issue;
  const before = pull.head.sha;
  world.changing(issue);
  pull.head = { ...pull.head, sha };
  pull.commits += 1;
  pull.additions += world.random.int(0, 40);
  pull.deletions += world.random.int(0, 20);
  forgetMergeable(pull);
  world.bump(issue);
  tellIssue(world, by, issue, "synchronize", { push: { ref: pull.head.ref, before, after: sha } });
}

function forgetMergeable(pull: PullIssue["pull"]): void {
  pull.mergeableKnownAt = null;
  pull.mergeCommitSha = null;
}

/** The base branch is merged into the head, if there is anything new in it. */
export function updatePullBranch(world: World, by: number, issue: PullIssue): void {
  const { repository, pull } = issue;
  const tip = repository.branches.get(pull.base.ref);
  const head = world.repositories.get(pull.head.repositoryId ?? 0);
  if (!head || issue.state === "closed") throw new Refusal(422, "The pull request has no branch to update.");
  const known = [...history(world, repository, pull.head.sha)].some(({ sha }) => sha === tip);
  if (tip === undefined || known || tip === pull.base.sha)
    throw new Refusal(422, "There are no new commits on the base branch.");
  const message = `Merge branch '${pull.base.ref}' into ${pull.head.ref}`;
  const sha = world.newSha();
  broughtCommit(world, by, head, { sha, message, parents: [pull.head.sha, tip] });
  pushBranch(world, by, head, pull.head.ref, sha);
}

export interface MergeOptions {
  readonly method?: "merge" | "squash" | "rebase";
  readonly title?: string;
  readonly message?: string;
}

/** Lands it: base branch moves, the pull request closes as merged, its author becomes a contributor. */
export function mergePull(world: World, by: number, issue: PullIssue, options: MergeOptions = {}): void {
  const { repository, pull } = issue;
  if (issue.state === "closed" || pull.draft) throw new Refusal(405, "Pull Request is not mergeable");
  world.changing(issue);
  world.changing(repository);
  const sha = world.newSha();
  const before = repository.branches.get(pull.base.ref) ?? pull.base.sha;
  world.countIssue(issue, -1);
  issue.state = "closed";
  world.countIssue(issue, 1);
  issue.closedAt = world.now();
  issue.closedById = by;
  issue.lastClosedAt = issue.closedAt;
  pull.mergedAt = issue.closedAt;
  pull.mergedById = by;
  pull.mergeCommitSha = sha;
  if (issue.authorId !== null) repository.contributorIds.add(issue.authorId);
  mergedCommit(world, by, issue, { before, sha, ...options });
  setBranch(world, repository, pull.base.ref, sha);
  world.bump(issue);
  world.emit({
    event: "push",
    action: null,
    repository,
    senderId: by,
    push: { ref: `refs/heads/${pull.base.ref}`, before, after: sha },
  });
  tellIssue(world, by, issue, "closed");
}

export function setDraft(world: World, by: number, issue: PullIssue, draft: boolean): void {
  if (issue.pull.draft === draft) return;
  world.changing(issue);
  issue.pull.draft = draft;
  world.bump(issue);
  tellIssue(world, by, issue, draft ? "converted_to_draft" : "ready_for_review");
}

export function requestReviewers(world: World, by: number, issue: PullIssue, userIds: readonly number[]): void {
  const fresh = [...new Set(userIds)].filter((id) => !issue.pull.requestedReviewerIds.includes(id));
  if (fresh.includes(issue.authorId ?? -1))
    throw new Refusal(422, "Review cannot be requested from pull request author.");
  if (fresh.length === 0) return;
  world.changing(issue);
  issue.pull.requestedReviewerIds = [...issue.pull.requestedReviewerIds, ...fresh];
  world.bump(issue);
  for (const id of fresh) tellIssue(world, by, issue, "review_requested", { requestedReviewerId: id });
}

export function removeRequestedReviewers(world: World, by: number, issue: PullIssue, userIds: readonly number[]): void {
  const gone = issue.pull.requestedReviewerIds.filter((id) => userIds.includes(id));
  if (gone.length === 0) return;
  world.changing(issue);
  issue.pull.requestedReviewerIds = issue.pull.requestedReviewerIds.filter((id) => !gone.includes(id));
  world.bump(issue);
  for (const id of gone) tellIssue(world, by, issue, "review_request_removed", { requestedReviewerId: id });
}

/** The fork behind the pull request is gone: `head.repo` is null from now on. No event, no bump. */
export function deleteForkHead(world: World, issue: PullIssue): void {
  world.changing(issue);
  issue.pull.head = { ...issue.pull.head, repositoryId: null };
}

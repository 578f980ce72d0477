import { endJob, startWorkflowRun, workflowOf } from "../../src/simulator/changes/actions.ts";
import { checkApp, createCheckRun, createStatus } from "../../src/simulator/changes/checks.ts";
import { createDeployment, createDeploymentStatus } from "../../src/simulator/changes/deployments.ts";
import { addIssueEvent } from "../../src/simulator/changes/issue-events.ts";
import { addTeam } from "../../src/simulator/changes/people.ts";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { createRelease } from "../../src/simulator/changes/releases.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { broughtCommit } from "../../src/simulator/world/commits.ts";
import type { Issue, PullIssue, Repository, User, Visibility } from "../../src/simulator/world/records.ts";
import type { Target } from "../api/targets.ts";

/** Repositories, named by what becomes of each. All but the first three change while the mirror serves them. */
export const PLACES = ["open", "secret", "inner", "closed", "paused", "gone", "renamed", "moved"] as const;
export type PlaceName = (typeof PLACES)[number];

const FIRST: Readonly<Record<PlaceName, Visibility>> = {
  open: "public",
  secret: "private",
  inner: "internal",
  closed: "public",
  paused: "public",
  gone: "private",
  renamed: "private",
  moved: "private",
};

/**
 * The kinds of resource that have a mark: a repository, an issue, a pull request, what comes with either of these, a
 * check run, a commit's status, a release, a deployment,
 * a run of a workflow, and a draft of a release.
 */
const KINDS = ["home", "case", "patch", "tag", "run", "state", "news", "ship", "work", "draft"] as const;
export type MarkKind = (typeof KINDS)[number];

/** A word that stands in one repository alone, in its resources of this kind. */
export function markOf(place: PlaceName, kind: MarkKind): string {
  return `mrk${place}${kind}`;
}

const MARKS = new RegExp(`mrk(${PLACES.join("|")})(${KINDS.join("|")})`, "g");

/** The marks in a text, as `place kind`, each once. */
export function marksIn(text: string): string[] {
  return [...new Set([...text.matchAll(MARKS)].map(([, place, kind]) => `${place} ${kind}`))].sort();
}

export interface Place {
  name: PlaceName;
  repository: Repository;
  issue: { number: number; id: number };
  pull: { number: number; id: number };
  /**
   * The resources that paths name. `issue`: the number and the comments are an issue's. `pull`: they are a pull
   * request's.
   */
  targets: { issue: Target; pull: Target };
  /** The full name that the repository had when the mirror first saw it. */
  formerName: string;
}

/** The owners of the places. `octo` is a member of `acme`, and the author of everything. */
export interface Owners {
  acme: User;
  other: User;
  octo: User;
}

export function addOwners({ world }: Pick<Simulator, "world">): Owners {
  const octo = world.addUser({ login: "octo" });
  const acme = world.addUser({ login: "acme", type: "Organization", memberIds: [octo.id], ownerIds: [octo.id] });
  for (const privacy of ["closed", "secret"] as const)
    addTeam(world, { organization: acme, name: `team ${privacy}`, privacy, members: [[octo.id, "member"]] });
  const other = world.addUser({ login: "other-owner", type: "Organization", memberIds: [octo.id] });
  return { acme, other, octo };
}

export function addPlace({ world }: Pick<Simulator, "world">, { acme, octo }: Owners, name: PlaceName): Place {
  const mark = (kind: MarkKind) => markOf(name, kind);
  const repository = world.addRepository({
    ownerId: acme.id,
    name: `at-${name}`,
    visibility: FIRST[name],
    description: mark("home"),
    topics: [mark("home")],
  });
  for (const team of world.teams.values()) team.repositories.set(repository.id, "pull");
  const label = world.addLabel({ repository, name: `named-${name}`, description: mark("tag") });
  const milestone = world.addMilestone({ repository, title: `goal of ${name}`, description: mark("tag") });
  const usual = {
    repository,
    authorId: octo.id,
    labelIds: [label.id],
    milestoneId: milestone.id,
    assigneeIds: [octo.id],
  };
  const end = (ref: string) => ({
    ref,
    sha: world.newSha(),
    label: `acme:${ref}`,
    userId: acme.id,
    repositoryId: repository.id,
  });
  const issue = world.addIssue({ ...usual, title: `A ${mark("case")}`, body: `Text of ${mark("case")}` });
  const addPull = (more: object = {}): PullIssue => {
    const [head, base] = [end(mark("patch")), end("main")];
    broughtCommit(world, octo.id, repository, { sha: head.sha, message: `Does ${mark("patch")}`, parents: [base.sha] });
    return world.addIssue({
      ...usual,
      title: `A ${mark("patch")}`,
      body: `Text of ${mark("patch")}`,
      pull: { head, base, changedFiles: 1, additions: 1, ...more },
    });
  };
  const pull = addPull();
  const merged = addPull({ mergedAt: world.now(), mergedById: octo.id, mergeCommitSha: world.newSha() });
  merged.state = "closed";
  merged.closedAt = world.now();
  const onIssue = world.addComment({ issue, authorId: octo.id, body: `On ${mark("case")}` });
  const happened = (to: Issue, from: string) =>
    addIssueEvent(world, octo.id, to, { happened: "renamed", details: { rename: { from, to: to.title } } });
  const events = new Map([issue, pull].map((one, at) => [one.id, happened(one, mark(at > 0 ? "patch" : "case"))]));
  const onPull = world.addComment({ issue: pull, authorId: octo.id, body: `On ${mark("patch")}` });
  const review = world.addReview({ issue: pull, authorId: octo.id, state: "APPROVED", body: `Of ${mark("patch")}` });
  const { sha } = pull.pull.head;
  const run = createCheckRun(world, octo.id, {
    ...{ repository, headSha: sha, app: checkApp(world, "linter"), name: mark("run"), conclusion: "success" },
  });
  createStatus(world, octo.id, { repository, sha, state: "success", context: mark("state") });
  pushBranch(world, octo.id, repository, "seen", sha);
  const [before, tip] = [repository.branches.get(repository.defaultBranch), world.newSha()];
  broughtCommit(world, octo.id, repository, {
    ...{ sha: tip, message: `Brings ${mark("news")}`, parents: before === undefined ? [] : [before] },
  });
  pushBranch(world, octo.id, repository, repository.defaultBranch, tip);
  pushBranch(world, octo.id, repository, mark("news"), sha);
  const [release] = [mark("news"), mark("draft")].map((word, at) =>
    createRelease(world, octo.id, { repository, tagName: `v${at}`, targetCommitish: sha, body: word, draft: at > 0 }),
  );
  const deployment = createDeployment(world, octo.id, { repository, ref: sha, description: mark("ship") });
  const status = createDeploymentStatus(world, octo.id, deployment, { state: "success", description: mark("ship") });
  const workflow = workflowOf(world, { repository, name: mark("work"), path: ".github/workflows/seen.yml" });
  const workflowRun = startWorkflowRun(world, octo.id, { workflow, headSha: sha, title: mark("work") });
  const [job] = workflowRun.jobs;
  if (job) endJob(world, octo.id, job, "success");
  const reviewComment = world.addReviewComment({
    issue: pull,
    authorId: octo.id,
    body: `In ${mark("patch")}`,
    path: "a.ts",
    commitId: pull.pull.head.sha,
    reviewId: review.id,
  });
  const id = (kind: Parameters<typeof world.nodeId>[0], row: Parameters<typeof world.nodeId>[1]) =>
    world.nodeId(kind, row, repository.id);
  const page = `https://github.com/acme/${repository.name}`;
  const target = (of: typeof issue, comment: { id: number }): Target => ({
    id: repository.id,
    fullName: `acme/${repository.name}`,
    ownerId: acme.id,
    title: issue.title,
    params: {
      number: String(of.number),
      "pulls/number": String(pull.number),
      merged: String(merged.number),
      "milestones/number": String(milestone.number),
      name: label.name,
      "issues/comments/id": String(comment.id),
      "issues/events/id": String(events.get(of.id)?.id),
      "pulls/comments/id": String(reviewComment.id),
      "comments/id": String(reviewComment.id),
      "reviews/id": String(review.id),
      assignee: "octo",
      "collaborators/username": "octo",
      username: "octo",
      ref: sha,
      "check-runs/id": String(run.id),
      "check-suites/id": String(run.suite.id),
      "deployments/id": String(deployment.id),
      "statuses/status": String(status.id),
      "workflows/workflow": "seen.yml",
      "runs/id": String(workflowRun.id),
      "jobs/id": String(job?.id),
      "releases/id": String(release?.id),
      tag: "v0",
      "ref/ref": "heads/seen",
      "matching-refs/ref": "heads/se",
      branch: "never-was",
    },
    nodes: {
      repository: world.nodeId("Repository", repository),
      issue: id("Issue", issue),
      pull: id("PullRequest", { id: pull.pull.id, createdAt: pull.createdAt }),
      onIssue: id("IssueComment", onIssue),
      onPull: id("IssueComment", onPull),
      review: id("PullRequestReview", review),
      reviewComment: id("PullRequestReviewComment", reviewComment),
      label: id("Label", label),
      milestone: id("Milestone", milestone),
    },
    pages: [
      page,
      `${page}/issues/${issue.number}`,
      `${page}/pull/${pull.number}`,
      `${page}/milestone/${milestone.number}`,
    ],
  });
  return {
    name,
    repository,
    issue: { number: issue.number, id: issue.id },
    pull: { number: pull.number, id: pull.pull.id },
    targets: { issue: target(issue, onIssue), pull: target(pull, onPull) },
    formerName: `acme/${repository.name}`,
  };
}

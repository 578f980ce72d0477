/** Looking rows up by global id, of either generation. */

import { kindOf } from "../world/access.ts";
import { type NodeKind, nodeId, parseNodeId } from "../world/node-id.ts";
import type { Issue } from "../world/records.ts";
import type { Row } from "../world/replica-lag.ts";
import { isPull } from "../world/world.ts";
import { type Call, notFound, requireEither, requireRead, seen } from "./call.ts";
import { showsDrafts } from "./refs.ts";
import { repositoryOf } from "./resolvers.ts";
import { parseThreadNodeId, type ReviewThread, reviewThreads } from "./review-thread.ts";

/** Throws NOT_FOUND for what is unknown, gone or not to be seen by the caller: all look alike. */
export function nodeById(call: Call, id: string): object {
  return checked(
    call,
    id,
    find(call, id, (row) => seen(call, row)),
  );
}

function checked(call: Call, id: string, row: object | null): object {
  const repository = row && repositoryOf(row);
  if (!row || (repository && !call.caller.roleOf(repository))) throw notFound(`a node with the global id of '${id}'`);
  const issue = issueOf(row);
  if (issue) requireRead(call, issue.repository, kindOf(issue));
  else if (repository && "tagName" in row) requireRead(call, repository, "contents");
  else if (repository && ("suite" in row || "headSha" in row)) requireRead(call, repository, "checks");
  else if (repository && ("originalEnvironment" in row || "deployment" in row))
    requireRead(call, repository, "deployments");
  else if (repository && repository !== row) requireEither(call, repository);
  const parsed = parseNodeId(id);
  // A repository itself lies in none.
  const home = repository && repository !== row ? repository.id : undefined;
  if (parsed && !/^[A-Z]+_/.test(id)) call.oldIds.set(id, nodeId(parsed.kind, parsed.id, false, home));
  return row;
}

/** Only what belongs to an issue has `issue`, and only issues have `pull`. */
function issueOf(row: object): Issue | null {
  if ("issue" in row) return row.issue as Issue;
  return "pull" in row ? (row as Issue) : null;
}

/**
 * The row to change, which must be of one of these kinds: the truth, not a replica's. The caller names the kinds' type.
 */
export function nodeOfKind<Wanted extends object>(call: Call, id: string, ...kinds: readonly NodeKind[]): Wanted {
  const parsed = parseNodeId(id);
  if (!parsed || !kinds.includes(parsed.kind)) throw notFound(`a node with the global id of '${id}'`);
  return checked(
    call,
    id,
    find(call, id, (row) => (row && !row.deleted ? row : null)),
  ) as Wanted;
}

/** The thread to change. */
export function threadById(call: Call, id: string): ReviewThread {
  const isThread = (row: object): row is ReviewThread => "root" in row;
  const row = checked(
    call,
    id,
    find(call, id, (one) => (one && !one.deleted ? one : null)),
  );
  if (!isThread(row)) throw notFound(`a node with the global id of '${id}'`);
  return row;
}

function find(call: Call, id: string, see: <T extends Row>(row: T | undefined) => T | null): object | null {
  const { world } = call;
  const threadId = parseThreadNodeId(id);
  if (threadId !== undefined) {
    const root = see(world.reviewComments.get(threadId));
    return (root && reviewThreads(root.issue).find((thread) => thread.id === threadId)) ?? null;
  }
  const parsed = parseNodeId(id);
  if (!parsed) return null;
  switch (parsed.kind) {
    case "User":
    case "Organization":
    case "Bot":
    case "Mannequin": {
      const user = world.users.get(parsed.id);
      return user?.type === parsed.kind ? user : null;
    }
    case "Repository":
      return see(world.repositories.get(parsed.id));
    case "Issue": {
      const issue = see(world.issues.get(parsed.id));
      return issue && !isPull(issue) ? issue : null;
    }
    case "PullRequest":
      return see(world.pulls.get(parsed.id));
    case "Label":
      return see(world.labels.get(parsed.id));
    case "Milestone":
      return see(world.milestones.get(parsed.id));
    case "IssueComment":
      return see(world.lag.find(world.comments, parsed.id));
    case "PullRequestReview": {
      const review = see(world.reviews.get(parsed.id));
      return review?.state === "PENDING" && review.authorId !== call.viewer.id ? null : review;
    }
    case "PullRequestReviewComment":
      return see(world.lag.find(world.reviewComments, parsed.id));
    case "CheckRun":
      return see(world.code.checkRuns.get(parsed.id));
    case "CheckSuite":
      return see(world.code.checkSuites.get(parsed.id));
    case "Release": {
      const release = see(world.code.releases.get(parsed.id));
      return release && (!release.draft || showsDrafts(call, release.repository)) ? release : null;
    }
    case "Deployment":
      return see(world.lag.find(world.code.deployments, parsed.id));
    case "DeploymentStatus":
      return see(world.lag.find(world.code.deploymentStatuses, parsed.id));
    case "ReleaseAsset":
    case "StatusContext":
    case "IssueType":
    case "Workflow":
    case "WorkflowRun":
    case "Team":
      // No client was seen to ask for one by its id, and nothing keeps them by it.
      return null;
    default:
      return parsed.kind satisfies never;
  }
}

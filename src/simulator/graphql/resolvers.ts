import type { GraphQLResolveInfo } from "graphql";
import { eventTypeOf } from "../views/issue-event.ts";
import type { IssueEvent } from "../world/issue-events.ts";
import type { Issue, Label, Milestone, Repository, Review, ReviewComment, User } from "../world/records.ts";
import type { CheckRun, CheckSuite, Deployment, DeploymentStatus } from "../world/records-code.ts";
import type { Call } from "./call.ts";
import type { ReviewThread } from "./review-thread.ts";

/** How the fields of one type are answered; fields that are not named are properties of the source. */
export type Fields<Source> = Readonly<
  // biome-ignore lint/suspicious/noExplicitAny: arguments are checked by the schema, each resolver names what it takes.
  Record<string, (source: Source, args: any, call: Call, info: GraphQLResolveInfo) => unknown>
>;

/** The schema's type of a row. graphql-js hands rows on as `object`: each type has a property that no other has. */
export function typeNameOf(row: unknown): string {
  if (typeof row !== "object" || row === null) throw new TypeError(`Not a row: ${String(row)}`);
  if ("happened" in row) return eventTypeOf(row as IssueEvent) ?? "IssueEvent";
  if ("login" in row) return (row as User).type;
  if ("clientId" in row) return "App";
  if ("organizationId" in row) return "Team";
  if ("ownerId" in row) return "Repository";
  if ("externalId" in row) return "CheckRun";
  if ("headSha" in row) return "CheckSuite";
  if ("context" in row) return "StatusContext";
  if ("thread" in row) return (row as Issue).pull ? "PullRequest" : "Issue";
  if ("diffHunk" in row) return "PullRequestReviewComment";
  if ("root" in row) return "PullRequestReviewThread";
  if ("submittedAt" in row) return "PullRequestReview";
  if ("color" in row) return "Label";
  if ("dueOn" in row) return "Milestone";
  if ("issue" in row && "body" in row) return "IssueComment";
  if ("originalEnvironment" in row) return "Deployment";
  if ("deployment" in row) return "DeploymentStatus";
  if ("tagName" in row) return "Release";
  if ("contentType" in row) return "ReleaseAsset";
  if ("oid" in row) return "object" in row ? "Tag" : "Commit";
  throw new TypeError("A row of no type of the schema");
}

/** The repository that a row lives in; null for accounts. Rows are told apart as above. */
export function repositoryOf(row: object): Repository | null {
  if ("clientId" in row) return null;
  if ("ownerId" in row) return row as Repository;
  if ("suite" in row) return (row as CheckRun).suite.repository;
  if ("deployment" in row) return (row as DeploymentStatus).deployment.repository;
  if ("repository" in row) return (row as Label | Milestone | Issue | CheckSuite | Deployment).repository;
  if ("issue" in row) return (row as Review | ReviewComment | ReviewThread).issue.repository;
  return null;
}

import { issueComments } from "../../../db/schema/comments.ts";
import { issues } from "../../../db/schema/issues.ts";
import { labels } from "../../../db/schema/labels.ts";
import { milestones } from "../../../db/schema/milestones.ts";
import { pullRequests } from "../../../db/schema/pull-requests.ts";
import { repositories } from "../../../db/schema/repositories.ts";
import { pullRequestReviewComments, pullRequestReviews } from "../../../db/schema/reviews.ts";
import type { ResourceKind } from "../../../db/schema/states.ts";
import type { Table } from "../../../db/schema/table.ts";
import { users } from "../../../db/schema/users.ts";
import { type Fields, type Json, objectOf } from "../../json.ts";
import { referenceId } from "./template.ts";

export type Kind = ResourceKind;

/**
 * Which resource: upstream's id, or the number for issues and pull requests. `repositoryId` is 0 for resources outside
 * repositories.
 */
export interface ResourceKey {
  kind: Kind;
  repositoryId: number;
  key: number;
}

/** How a kind of resource lies in its table. */
export interface Resource {
  kind: Kind;
  table: Table;
  /** The last column of its primary key; `repository_id` stands before it where there is one. */
  keyColumn: "id" | "number";
  /** The values of the table's own columns, by column name, taken from the stripped fields. */
  columns: (fields: Fields) => Record<string, Json>;
  /** Keys that upstream sends only for a single resource; they are stored in the column `detail`. */
  detailKeys: ReadonlySet<string>;
  /** Whether the text `body` lies in a column of its own. */
  hasBody: boolean;
  /** Whether its `updated_at` can order two observations. Embedded users and labels have none. */
  isVersioned: boolean;
}

const NONE: ReadonlySet<string> = new Set();

const user: Resource = {
  kind: "user",
  table: users,
  keyColumn: "id",
  columns: (fields) => pick(fields, "node_id", "login", "type", "name", "avatar_url", "site_admin", "updated_at"),
  detailKeys: NONE,
  hasBody: false,
  isVersioned: false,
};

const repository: Resource = {
  kind: "repository",
  table: repositories,
  keyColumn: "id",
  columns: (fields) => ({
    ...pick(
      fields,
      "node_id",
      "name",
      "full_name",
      "html_url",
      "private",
      "visibility",
      "description",
      "fork",
      "archived",
      "disabled",
    ),
    ...pick(
      fields,
      "has_issues",
      "default_branch",
      "language",
      "stargazers_count",
      "forks_count",
      "open_issues_count",
      "size",
    ),
    ...pick(fields, "created_at", "updated_at", "pushed_at"),
    owner_id: referenceId(fields.owner),
  }),
  // GitHub sends these for GET /repos/{owner}/{repo} only (its OpenAPI: full-repository less repository).
  detailKeys: new Set([
    "subscribers_count",
    "network_count",
    "organization",
    "parent",
    "source",
    "template_repository",
    "temp_clone_token",
    "security_and_analysis",
    "code_of_conduct",
    "allow_squash_merge",
    "allow_merge_commit",
    "allow_rebase_merge",
    "allow_auto_merge",
    "delete_branch_on_merge",
    "allow_update_branch",
    "use_squash_pr_title_as_default",
    "squash_merge_commit_title",
    "squash_merge_commit_message",
    "merge_commit_title",
    "merge_commit_message",
    "anonymous_access_enabled",
    "master_branch",
  ]),
  hasBody: false,
  isVersioned: true,
};

const label: Resource = {
  kind: "label",
  table: labels,
  keyColumn: "id",
  columns: (fields) => pick(fields, "node_id", "name", "color", "description", "default"),
  detailKeys: NONE,
  hasBody: false,
  isVersioned: false,
};

const milestone: Resource = {
  kind: "milestone",
  table: milestones,
  keyColumn: "id",
  columns: (fields) => ({
    ...pick(fields, "node_id", "number", "title", "description", "state", "open_issues", "closed_issues"),
    ...pick(fields, "created_at", "updated_at", "due_on", "closed_at"),
    creator_id: referenceId(fields.creator),
  }),
  detailKeys: NONE,
  hasBody: false,
  isVersioned: true,
};

const issue: Resource = {
  kind: "issue",
  table: issues,
  keyColumn: "number",
  columns: (fields) => ({
    ...pick(
      fields,
      "id",
      "node_id",
      "title",
      "state_reason",
      "locked",
      "active_lock_reason",
      "draft",
      "author_association",
    ),
    ...pick(fields, "comments", "created_at", "updated_at", "closed_at"),
    state: stateOf(fields),
    is_pull_request: isPullRequest(fields),
    user_id: referenceId(fields.user),
    milestone_id: referenceId(fields.milestone),
    closed_by_id: referenceId(fields.closed_by),
  }),
  detailKeys: NONE,
  hasBody: true,
  isVersioned: true,
};

const pullRequest: Resource = {
  kind: "pull_request",
  table: pullRequests,
  keyColumn: "number",
  columns: (fields) => {
    const [head, base] = [objectOf(fields.head), objectOf(fields.base)];
    return {
      ...pick(fields, "id", "node_id", "title", "locked", "draft", "author_association", "merge_commit_sha"),
      ...pick(
        fields,
        "mergeable",
        "mergeable_state",
        "comments",
        "review_comments",
        "commits",
        "additions",
        "deletions",
        "changed_files",
      ),
      ...pick(fields, "created_at", "updated_at", "closed_at", "merged_at"),
      state: stateOf(fields),
      merged: fields.merged ?? (fields.merged_at === undefined ? null : fields.merged_at !== null),
      user_id: referenceId(fields.user),
      milestone_id: referenceId(fields.milestone),
      merged_by_id: referenceId(fields.merged_by),
      head_label: head.label ?? null,
      head_ref: head.ref ?? null,
      head_sha: head.sha ?? null,
      head_repository_id: referenceId(head.repo),
      base_ref: base.ref ?? null,
      base_sha: base.sha ?? null,
    };
  },
  // GitHub's OpenAPI: pull-request less pull-request-simple.
  detailKeys: new Set([
    "merged",
    "mergeable",
    "rebaseable",
    "mergeable_state",
    "merged_by",
    "comments",
    "review_comments",
    "maintainer_can_modify",
    "commits",
    "additions",
    "deletions",
    "changed_files",
  ]),
  hasBody: true,
  isVersioned: true,
};

const issueComment: Resource = {
  kind: "issue_comment",
  table: issueComments,
  keyColumn: "id",
  columns: (fields) => ({
    ...pick(fields, "node_id", "author_association", "created_at", "updated_at"),
    issue_number: numberInAddress(fields.issue_url),
    user_id: referenceId(fields.user),
  }),
  detailKeys: NONE,
  hasBody: true,
  isVersioned: true,
};

const review: Resource = {
  kind: "review",
  table: pullRequestReviews,
  keyColumn: "id",
  columns: (fields) => ({
    ...pick(fields, "node_id", "author_association", "state", "commit_id", "submitted_at", "updated_at"),
    pull_number: numberInAddress(fields.pull_request_url),
    user_id: referenceId(fields.user),
  }),
  // REST sends no updated_at of a review; webhooks and GraphQL do.
  detailKeys: new Set(["updated_at"]),
  hasBody: true,
  isVersioned: false,
};

const reviewComment: Resource = {
  kind: "review_comment",
  table: pullRequestReviewComments,
  keyColumn: "id",
  columns: (fields) => ({
    ...pick(
      fields,
      "node_id",
      "author_association",
      "path",
      "line",
      "side",
      "commit_id",
      "in_reply_to_id",
      "created_at",
      "updated_at",
    ),
    review_id: fields.pull_request_review_id ?? null,
    pull_number: numberInAddress(fields.pull_request_url),
    user_id: referenceId(fields.user),
  }),
  detailKeys: NONE,
  hasBody: true,
  isVersioned: true,
};

/**
 * In the order of writing: every transaction takes its locks in this order. Rows that transactions about different
 * issues share come last, so these locks are short: nearly every delivery changes its repository.
 */
const RESOURCES: Readonly<Record<Kind, Resource>> = {
  issue,
  pull_request: pullRequest,
  issue_comment: issueComment,
  review,
  review_comment: reviewComment,
  user,
  label,
  milestone,
  repository,
};
export const resources: readonly Resource[] = Object.values(RESOURCES);

export function resourceOf(kind: Kind): Resource {
  return RESOURCES[kind];
}

/** Some webhooks leave the state out, though it is as `closed_at` says. */
function stateOf(fields: Fields): Json {
  return fields.state ?? (fields.closed_at ? "closed" : "open");
}

/** Answers from before 2014 give every issue a `pull_request`, with nulls inside. */
export function isPullRequest(fields: Fields): boolean {
  return (
    typeof objectOf(fields.pull_request).url === "string" || typeof objectOf(fields.pull_request).html_url === "string"
  );
}

/** `…/issues/5` → 5: upstream names the parent of a comment or review by address alone. */
export function numberInAddress(address: Json | undefined): number | null {
  const match = typeof address === "string" ? /\/(\d+)$/.exec(address) : null;
  return match ? Number(match[1]) : null;
}

function pick(fields: Fields, ...keys: string[]): Record<string, Json> {
  return Object.fromEntries(keys.map((key) => [key, fields[key] ?? null]));
}

import type { Context } from "../../context.ts";
import { type Fields, isObject, type Json, objectOf, textOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { joinObserved, type Observed } from "../../mirror/store/observation.ts";
import type { ResourceKey } from "../../mirror/store/resource.ts";
import { strip } from "../../mirror/store/resource.ts";
import { readMergeability } from "../reads/graphql-pulls.ts";
import { sightingOf } from "../reads/pages.ts";
import { MERGEABILITY_FIELDS, mergeabilityView } from "../reads/pull-observations.ts";

/** A webhook may name any node as the id of a new resource. */
const REPOSITORY = "repository { databaseId }";
const DISCUSSED =
  "title body state locked activeLockReason closedAt updatedAt authorAssociation comments { totalCount }";

/**
 * The values that contradictions are mostly about. None needs a page of a connection, so a query for all of them costs
 * a point.
 */
export const VALUES = `__typename
  ... on Issue { ${REPOSITORY} ${DISCUSSED} stateReason(enableDuplicate: true) }
  ... on PullRequest { ${REPOSITORY} ${DISCUSSED} ${MERGEABILITY_FIELDS} isDraft merged mergedAt mergeCommit { oid } }
  ... on IssueComment { ${REPOSITORY} body authorAssociation updatedAt }
  ... on PullRequestReviewComment { ${REPOSITORY} body authorAssociation updatedAt }
  ... on PullRequestReview { ${REPOSITORY} body state authorAssociation updatedAt }
  ... on Label { ${REPOSITORY} name color description url }`;

/**
 * The same, with the summary of sub-issues. A server without sub-issues would refuse the query, so only issues that had
 * such a summary are asked for it.
 */
export const SUMMARIES = `${VALUES} ... on Issue { subIssuesSummary { total completed percentCompleted } }`;

/**
 * The values of one resource in REST's words, as a part of it. Null: the keys in doubt are not all among them, or
 * another kind of resource has the id.
 */
export function observeValues(
  ctx: Pick<Context, "config">,
  repository: MirroredRepository,
  { kind, repositoryId, key }: ResourceKey,
  { node, seenAt, inDoubt }: { node: Fields; seenAt: Date; inDoubt: readonly string[] },
): Observed | null {
  const at = sightingOf(ctx, repository, seenAt);
  const values = nodeValues(kind, node, `${ctx.config.upstreamUrl}/repos/${repository.fullName}`);
  if (!values || !inDoubt.every((one) => one in values)) return null;
  const { fullName, htmlUrl } = repository;
  const { fields } = strip(values, { api: at.api, fullName, htmlUrl: htmlUrl ?? undefined });
  // Labels have no time of their own, and reviews are not ordered by theirs.
  const updatedAt = kind === "label" || kind === "review" ? Number.NaN : Date.parse(String(node.updatedAt));
  const stamp = { updatedAt: Number.isNaN(updatedAt) ? 0 : updatedAt, seenAt: seenAt.getTime(), read: true };
  const seen = { kind, repositoryId, key, fields, stamp, deleted: false, extent: "partial" as const, overrules: true };
  return joinObserved([{ seen: [seen], shapes: new Map() }]);
}

function nodeValues(kind: ResourceKey["kind"], node: Fields, address: string): Fields | null {
  switch (node.__typename) {
    case "Issue":
      return kind === "issue"
        ? { ...discussed(node), state_reason: lower(node.stateReason), ...subIssuesSummary(node.subIssuesSummary) }
        : null;
    case "PullRequest":
      if (kind === "issue") return { ...discussed(node), draft: orNull(node.isDraft) };
      return kind === "pull_request" ? { ...discussed(node), ...pullValues(node) } : null;
    case "IssueComment":
      return kind === "issue_comment" ? written(node) : null;
    case "PullRequestReviewComment":
      return kind === "review_comment" ? written(node) : null;
    case "PullRequestReview":
      return kind === "review"
        ? { ...written(node), state: orNull(node.state), updated_at: orNull(node.updatedAt) }
        : null;
    case "Label":
      return kind === "label" ? labelValues(node, address) : null;
    default:
      return null;
  }
}

function discussed(node: Fields): Fields {
  return {
    ...written(node),
    title: orNull(node.title),
    state: node.state === "OPEN" ? "open" : "closed",
    locked: orNull(node.locked),
    active_lock_reason: lockReason(node.activeLockReason),
    closed_at: orNull(node.closedAt),
    comments: orNull(objectOf(node.comments).totalCount),
  };
}

function subIssuesSummary(summary: Json | undefined): Fields {
  if (!isObject(summary)) return {};
  const { total, completed, percentCompleted } = summary;
  const percent_completed = orNull(percentCompleted);
  return { sub_issues_summary: { total: orNull(total), completed: orNull(completed), percent_completed } };
}

/** GraphQL shows no text as "", which REST may spell null. */
function written({ body, authorAssociation }: Fields): Fields {
  return { author_association: orNull(authorAssociation), ...(body ? { body } : {}) };
}

function pullValues(node: Fields): Fields {
  const merge = textOf(objectOf(node.mergeCommit).oid);
  const { number: _number, ...mergeability } = mergeabilityView(readMergeability(node, "node"));
  return {
    draft: orNull(node.isDraft),
    merged: orNull(node.merged),
    merged_at: orNull(node.mergedAt),
    ...(node.state === "OPEN" ? mergeability : {}),
    ...(node.state === "MERGED" && merge !== null ? { merge_commit_sha: merge } : {}),
  };
}

/** Both addresses of a label end in its name. */
function labelValues({ name, color, description, url }: Fields, address: string): Fields | null {
  const [, ending] = /\/labels\/([^/]+)$/.exec(textOf(url) ?? "") ?? [];
  if (ending === undefined) return null;
  return {
    name: orNull(name),
    color: orNull(color),
    description: orNull(description),
    url: `${address}/labels/${ending}`,
  };
}

function lower(word: Json | undefined): Json {
  return textOf(word)?.toLowerCase() ?? null;
}

/** `TOO_HEATED` → `too heated`; only one of REST's words has a hyphen. */
function lockReason(word: Json | undefined): Json {
  return word === "OFF_TOPIC" ? "off-topic" : (textOf(word)?.toLowerCase().replaceAll("_", " ") ?? null);
}

function orNull(value: Json | undefined): Json {
  return value ?? null;
}

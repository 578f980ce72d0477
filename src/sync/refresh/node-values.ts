import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, isObject, type Json, objectOf, rowsOf, textOf } from "../../json.ts";
import { referenceId } from "../../mirror/documents.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { findAllStored } from "../../mirror/store/merge.ts";
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

const SHOWN_LABELS = "labels(first: 100) { totalCount nodes { id name color description isDefault url } }";

/** The same, with labels: upstream gives an issue at most 100. Each resource costs a hundredth of a point. */
export const LABELS = `${VALUES} ... on Issue { ${SHOWN_LABELS} } ... on PullRequest { ${SHOWN_LABELS} }`;

/** How many issues and pull requests a milestone has. Each milestone costs four hundredths of a point. */
export const COUNTS = `... on Milestone { __typename ${REPOSITORY} updatedAt
  openIssues: issues(states: OPEN) { totalCount } closedIssues: issues(states: CLOSED) { totalCount }
  openPulls: pullRequests(states: OPEN) { totalCount }
  closedPulls: pullRequests(states: [CLOSED, MERGED]) { totalCount } }`;

/**
 * The values of one resource in REST's words, as a part of it. Null: the keys in doubt are not all among them, or
 * another kind of resource has the id.
 */
export async function observeValues(
  ctx: Pick<Context, "config" | "db">,
  repository: MirroredRepository,
  resource: ResourceKey,
  { node, seenAt, inDoubt }: { node: Fields; seenAt: Date; inDoubt: readonly string[] },
): Promise<Observed | null> {
  const { kind, repositoryId, key } = resource;
  const at = sightingOf(ctx, repository, seenAt);
  const address = `${ctx.config.upstreamUrl}/repos/${repository.fullName}`;
  const plain = nodeValues(kind, node, address);
  const labels = plain && inDoubt.includes("labels") ? await labelsIn(ctx, resource, node, address) : null;
  const values = labels ? { ...plain, labels } : plain;
  if (!values || !inDoubt.every((one) => one in values)) return null;
  const { fullName, htmlUrl } = repository;
  const { fields, shapes } = strip(values, { api: at.api, fullName, htmlUrl: htmlUrl ?? undefined });
  // Labels have no time of their own, and reviews are not ordered by theirs.
  const updatedAt = kind === "label" || kind === "review" ? Number.NaN : Date.parse(String(node.updatedAt));
  const stamp = { updatedAt: Number.isNaN(updatedAt) ? 0 : updatedAt, seenAt: seenAt.getTime(), read: true };
  const seen = { kind, repositoryId, key, fields, stamp, deleted: false, extent: "partial" as const, overrules: true };
  return joinObserved([{ seen: [seen], shapes }]);
}

/**
 * The labels of an issue or pull request, as REST shows them. Those that it is known to have come first, in the known
 * order: GraphQL may have another. Null: the answer does not show them all, or the mirror does not know one of them.
 */
async function labelsIn(
  { db }: Pick<Context, "db">,
  resource: ResourceKey,
  node: Fields,
  address: string,
): Promise<Fields[] | null> {
  const { nodes, totalCount } = objectOf(node.labels);
  const shown = rowsOf(nodes);
  if (shown.length !== totalCount) return null;
  const rows = await db.query<{ id: number; nodeId: string }>(sql`
    select id::float8 as id, node_id as "nodeId" from labels
      where repository_id = ${resource.repositoryId} and node_id = any(${shown.map(({ id }) => textOf(id))}::text[])`);
  const ids = new Map(rows.map(({ id, nodeId }) => [nodeId, id]));
  const stored = await db.transaction((tx) => findAllStored(tx, [resource]));
  const had = stored(resource)?.fields.labels;
  const known = Array.isArray(had) ? had.map(referenceId) : [];
  const labels = shown.flatMap((label): (Fields & { id: number })[] => {
    const id = ids.get(textOf(label.id) ?? "");
    const values = labelValues(label, address);
    if (id === undefined || values === null) return [];
    const { url = null, name = null, color = null, description = null } = values;
    return [{ id, ...{ node_id: orNull(label.id), url, name, color, default: orNull(label.isDefault), description } }];
  });
  const placeOf = ({ id }: { id: number }) => (known.includes(id) ? known.indexOf(id) : known.length);
  return labels.length === shown.length ? labels.toSorted((one, other) => placeOf(one) - placeOf(other)) : null;
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
    case "Milestone":
      return kind === "milestone" ? milestoneCounts(node) : null;
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

/** REST counts pull requests among the issues of a milestone. */
function milestoneCounts({ openIssues, closedIssues, openPulls, closedPulls }: Fields): Fields | null {
  const [open, closed] = [
    [openIssues, openPulls],
    [closedIssues, closedPulls],
  ].map((lists) => lists.reduce<number>((sum, list) => sum + Number(objectOf(list).totalCount ?? Number.NaN), 0));
  return Number.isNaN(open) || Number.isNaN(closed) ? null : { open_issues: open ?? 0, closed_issues: closed ?? 0 };
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

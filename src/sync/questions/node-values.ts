import { and, eq } from "drizzle-orm";
import type { Queries } from "../../../db/database.ts";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, isObject, type Json, objectOf, rowsOf, textOf } from "../../json.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { referenceId } from "../../kinds/contract/placeholders.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { findAllStored } from "../../mirror/store/merge.ts";
import { joinObserved, type Observed } from "../../mirror/store/observation.ts";
import { strip } from "../../mirror/store/template.ts";
import { labels } from "../../schema.ts";
import { readableRows } from "../../upstream/protocol/field-readers.ts";
import { readActor, readMergeability } from "../reads/graphql-pulls.ts";
import { sightingOf } from "../reads/pages.ts";
import { ACTOR, MERGEABILITY_FIELDS, mergeabilityView, userView } from "../reads/pull-observations.ts";

/** A webhook may name any node as the id of a new resource. */
const REPOSITORY = "repository { databaseId }";
const DISCUSSED =
  "title body state locked activeLockReason closedAt updatedAt authorAssociation comments { totalCount }";

/** The values that contradictions are mostly about. None needs a page of a connection. */
const VALUES = `__typename
  ... on Issue { ${REPOSITORY} ${DISCUSSED} stateReason(enableDuplicate: true) }
  ... on PullRequest { ${REPOSITORY} ${DISCUSSED} ${MERGEABILITY_FIELDS} isDraft merged mergedAt mergeCommit { oid } }
  ... on IssueComment { ${REPOSITORY} body authorAssociation updatedAt }
  ... on PullRequestReviewComment { ${REPOSITORY} body authorAssociation updatedAt }
  ... on PullRequestReview { ${REPOSITORY} body state authorAssociation updatedAt }
  ... on Label { ${REPOSITORY} name color description url }`;

/** How many issues and pull requests a milestone has. Each milestone costs four hundredths of a point. */
const COUNTS = `... on Milestone { __typename ${REPOSITORY} updatedAt
  openIssues: issues(states: OPEN) { totalCount } closedIssues: issues(states: CLOSED) { totalCount }
  openPulls: pullRequests(states: OPEN) { totalCount }
  closedPulls: pullRequests(states: [CLOSED, MERGED]) { totalCount } }`;

/** Upstream gives an issue at most 100. */
const SHOWN_LABELS = "labels(first: 100) { totalCount nodes { id name color description isDefault url } }";

const LAST_CLOSING = `timelineItems(last: 1, itemTypes: [CLOSED_EVENT]) {
  nodes { ... on ClosedEvent { createdAt actor { ${ACTOR} } } } }`;

/**
 * What is asked for besides only where it is in doubt, by REST's key. A connection costs a hundredth of a point for each
 * resource. A server without sub-issues would refuse the query, so only issues that had such a summary are asked for it.
 */
const IN_DOUBT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    sub_issues_summary: "... on Issue { subIssuesSummary { total completed percentCompleted } }",
    labels: `... on Issue { ${SHOWN_LABELS} } ... on PullRequest { ${SHOWN_LABELS} }`,
    closed_by: `... on Issue { ${LAST_CLOSING} } ... on PullRequest { ${LAST_CLOSING} }`,
    merged_by: `... on PullRequest { mergedBy { ${ACTOR} } }`,
    review_comments:
      "... on PullRequest { reviewThreads(first: 100) { totalCount nodes { comments { totalCount } } } }",
    milestone: "... on Issue { milestone { id } } ... on PullRequest { milestone { id } }",
  }),
);

/** What to select of one resource to learn the keys in doubt, as far as GraphQL shows them. */
export function selectValues({ kind, inDoubt }: Pick<ResourceKey, "kind"> & { inDoubt: readonly string[] }): string {
  return kind === "milestone" ? COUNTS : [VALUES, ...inDoubt.flatMap((key) => IN_DOUBT.get(key) ?? [])].join("\n");
}

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
  if (!plain) return null;
  const shown = { ...plain, ...(await shownInDoubt(ctx, resource, { node, inDoubt, address })) };
  const { fullName, htmlUrl } = repository;
  const stripped = strip(shown, { api: at.api, fullName, htmlUrl: htmlUrl ?? undefined });
  const fields = { ...stripped.fields, ...(await keptInDoubt(ctx, resource, { node, inDoubt })) };
  if (!inDoubt.every((one) => Object.hasOwn(fields, one))) return null;
  // Labels have no time of their own, and reviews are not ordered by theirs.
  const updatedAt = kind === "label" || kind === "review" ? Number.NaN : Date.parse(String(node.updatedAt));
  const stamp = { updatedAt: Number.isNaN(updatedAt) ? 0 : updatedAt, seenAt: seenAt.getTime(), read: true };
  const seen = { kind, repositoryId, key, fields, stamp, deleted: false, extent: "partial" as const, overrules: true };
  return joinObserved([{ seen: [seen], shapes: stripped.shapes }]);
}

interface Doubt {
  node: Fields;
  inDoubt: readonly string[];
}

/** What else of the keys in doubt GraphQL shows, in REST's words. What is shown in part is left out. */
async function shownInDoubt(
  ctx: Pick<Context, "config" | "db">,
  resource: ResourceKey,
  { node, inDoubt, address }: Doubt & { address: string },
): Promise<Fields> {
  const values: Record<string, () => Promise<Json | undefined>> = {
    labels: () => labelsIn(ctx, resource, node, address),
    closed_by: async () => (wasNeverClosed(node) ? null : await knownUser(ctx, closerIn(node))),
    merged_by: () => knownUser(ctx, node.mergedBy),
    review_comments: async () => reviewCommentsIn(node),
  };
  const shown = await Promise.all(
    inDoubt.map(async (key) => [key, Object.hasOwn(values, key) ? await values[key]?.() : undefined] as const),
  );
  return Object.fromEntries(shown.filter((entry): entry is [string, Json] => entry[1] !== undefined));
}

/** Those of the keys in doubt that need no new words of REST, as they are stored. */
async function keptInDoubt(
  { db }: Pick<Context, "db">,
  resource: ResourceKey,
  { node, inDoubt }: Doubt,
): Promise<Fields> {
  const kept: Fields = {};
  if (inDoubt.includes("milestone")) {
    const milestone = node.milestone
      ? await milestoneReference(db, resource, textOf(objectOf(node.milestone).id))
      : null;
    if (milestone !== undefined) kept.milestone = milestone;
  }
  if (inDoubt.includes("pull_request") && node.mergedAt !== undefined) {
    const stored = await db.transaction((tx) => findAllStored(tx, [resource]));
    const had = stored(resource)?.fields.pull_request;
    if (isObject(had)) kept.pull_request = { ...had, merged_at: node.mergedAt };
  }
  return kept;
}

/** Who closed the issue last: REST shows it of a reopened one, too. A timeline may lack the closing of a closed one. */
function closerIn({ timelineItems, closedAt, stateReason }: Fields): Json | undefined {
  const [closing] = rowsOf(objectOf(timelineItems).nodes);
  const isLast = closing?.createdAt === closedAt || (closedAt === null && stateReason === "REOPENED");
  return closing && isLast ? closing.actor : undefined;
}

/** An issue may have been closed in another repository, before it was transferred. A pull request cannot be transferred. */
function wasNeverClosed({ __typename, state, timelineItems }: Fields): boolean {
  const closings = objectOf(timelineItems).nodes;
  return __typename === "PullRequest" && state === "OPEN" && Array.isArray(closings) && closings.length === 0;
}

/** REST's form of an account that the mirror knows. A deleted one is null in GraphQL alone. */
async function knownUser(
  { config, db }: Pick<Context, "config" | "db">,
  shown: Json | undefined,
): Promise<Fields | undefined> {
  const actor = readableRows(readActor, shown, "actor");
  if (!actor?.databaseId) return undefined;
  const known = await db.count(sql`select from users where id = ${actor.databaseId}`);
  return known > 0 ? userView(actor, actor.databaseId, config.upstreamUrl) : undefined;
}

function reviewCommentsIn({ reviewThreads }: Fields): number | undefined {
  const { nodes, totalCount } = objectOf(reviewThreads);
  const threads = rowsOf(nodes);
  const counts = threads.map(({ comments }) => Number(objectOf(comments).totalCount ?? Number.NaN));
  const sum = counts.reduce((total, count) => total + count, 0);
  return threads.length === totalCount && !Number.isNaN(sum) ? sum : undefined;
}

/** How another issue of the repository refers to this milestone; undefined: none does. */
async function milestoneReference(
  db: Queries,
  { repositoryId }: ResourceKey,
  nodeId: string | null,
): Promise<string | undefined> {
  const [row] = await db.query<{ reference: string | null }>(sql`
    select i.document ->> 'milestone' as reference from milestones m
      join issues i on i.repository_id = m.repository_id and i.milestone_id = m.id
      where m.repository_id = ${repositoryId} and m.node_id = ${nodeId} limit 1`);
  return row?.reference ?? undefined;
}

/**
 * The labels of an issue or pull request, as REST shows them. Those that it is known to have come first, in the known
 * order: GraphQL may have another. Undefined: the answer does not show them all, or the mirror does not know one.
 */
async function labelsIn(
  { db }: Pick<Context, "db">,
  resource: ResourceKey,
  node: Fields,
  address: string,
): Promise<Fields[] | undefined> {
  const { nodes, totalCount } = objectOf(node.labels);
  const shown = rowsOf(nodes);
  if (shown.length !== totalCount) return undefined;
  const nodeIds = shown.map(({ id }) => textOf(id));
  const rows = await db
    .select({ id: labels.id, nodeId: labels.nodeId })
    .from(labels)
    .where(and(eq(labels.repositoryId, resource.repositoryId), among(labels.nodeId, nodeIds)));
  const ids = new Map(rows.map(({ id, nodeId }) => [nodeId, id]));
  const stored = await db.transaction((tx) => findAllStored(tx, [resource]));
  const had = stored(resource)?.fields.labels;
  const known = Array.isArray(had) ? had.map(referenceId) : [];
  const views = shown.flatMap((label): (Fields & { id: number })[] => {
    const id = ids.get(textOf(label.id) ?? "");
    const values = labelValues(label, address);
    if (id === undefined || values === null) return [];
    const { url = null, name = null, color = null, description = null } = values;
    return [{ id, ...{ node_id: orNull(label.id), url, name, color, default: orNull(label.isDefault), description } }];
  });
  const placeOf = ({ id }: { id: number }) => (known.includes(id) ? known.indexOf(id) : known.length);
  return views.length === shown.length ? views.toSorted((one, other) => placeOf(one) - placeOf(other)) : undefined;
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

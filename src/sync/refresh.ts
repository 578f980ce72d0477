import { sql } from "../../db/drizzle.ts";
import type { Context } from "../context.ts";
import { findMirroredRepository, type MirroredRepository } from "../mirror/find-repository.ts";
import { afterLag, type Mark, type MarkKey, marksForMergeability, marksForTies, storeMarks } from "../mirror/marks.ts";
import { REPLICA_LAG_MS } from "../mirror/merge-rule.ts";
import { joinObserved, type Observed, observe, type Seen } from "../mirror/observation.ts";
import type { Kind, ResourceKey } from "../mirror/resource.ts";
import { findStored, mergeObserved } from "../mirror/store.ts";
import type { Json } from "../mirror/template.ts";
import { placeIn, storeTransfer } from "../mirror/transfers.ts";
import type { Answer, Priority } from "../upstream/client.ts";
import { enqueueMarks, findMark, postponeMark, settleMark } from "./marks.ts";
import { refreshMergeability } from "./mergeability.ts";
import { PAGE_SIZE, sightingOf, storePage } from "./pages.ts";

/**
 * Reads one resource anew, with authority. A read that a lagging replica may have answered does not settle the mark: the
 * resource is asked for once more. Answers "unknown" when the mirror does not know where to ask.
 */
export async function refresh(ctx: Context, wanted: MarkKey): Promise<"merged" | "deleted" | "kept" | "unknown"> {
  return isResource(wanted) ? refreshResource(ctx, wanted) : refreshMergeability(ctx, wanted.repositoryId);
}

function isResource(wanted: MarkKey): wanted is ResourceKey {
  return wanted.kind !== "mergeability";
}

async function refreshResource(ctx: Context, wanted: ResourceKey): ReturnType<typeof refresh> {
  const mark = await findMark(ctx.db, wanted);
  const repository = wanted.repositoryId === 0 ? null : await findMirroredRepository(ctx.db, wanted.repositoryId);
  const path = repository?.state === "gone" ? null : await pathOf(ctx, wanted);
  if (path === null) {
    if (mark) await settleMark(ctx.db, mark);
    return "unknown";
  }
  const startedAt = ctx.clock.now();
  const { observed, outcome, isAbsent } = await readAnew(ctx, wanted, repository, path, "refresh");
  if (isAbsent && (await wasSeenLately(ctx, observed, startedAt))) {
    const again = [{ ...wanted, askedAt: startedAt, notBefore: afterLag(startedAt) }];
    await ctx.db.transaction(async (tx) => {
      await storeMarks(tx, again);
      if (mark) await postponeMark(tx, mark, afterLag(startedAt));
    });
    await enqueueMarks(ctx, again);
    return "kept";
  }
  const marks = await store(ctx, overruling(observed, wanted), mark, startedAt);
  await enqueueMarks(ctx, marks);
  if (repository && wanted.kind === "issue" && outcome === "merged")
    await readMissingComments(ctx, repository, [wanted.key], "refresh");
  return outcome;
}

/**
 * What a write implies may say of a resource that it changed a second later than it did; what no replica's lag explains
 * any more is then wrong.
 */
function overruling({ seen, shapes }: Observed, { kind, key }: ResourceKey): Observed {
  const isWanted = (one: Seen) => one.kind === kind && one.key === key && one.extent !== "part";
  return { seen: seen.map((one) => (isWanted(one) ? { ...one, overrules: true } : one)), shapes };
}

/**
 * An issue that was transferred here brought its comments along, as old as they are, so that no list of changes shows them;
 * its count of them tells.
 */
export async function readMissingComments(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  priority: Priority,
): Promise<void> {
  if (numbers.length === 0) return;
  const { rows } = await ctx.db.$client.query<{ number: number }>(
    `select i.number from issues i where i.repository_id = $1 and i.number = any($2) and i.deleted_at is null
      and i.comments > (select count(*) from issue_comments c
        where c.repository_id = i.repository_id and c.issue_number = i.number and c.deleted_at is null) order by i.number`,
    [repository.id, numbers],
  );
  for (const { number } of rows) {
    const first = `/repositories/${repository.id}/issues/${number}/comments?per_page=${PAGE_SIZE}`;
    for (let path: string | null = first; path !== null; )
      path = (await storePage(ctx, repository, "issue_comment", path, priority, async () => {})).next;
  }
}

interface Read {
  observed: Observed;
  outcome: "merged" | "deleted" | "kept";
  /** "deleted" is concluded from its not being there, which is also so of what a replica has not heard of yet. */
  isAbsent?: boolean;
}

/** Whether what is absent now was seen so shortly before that the replica that answered may lag behind that. */
async function wasSeenLately(ctx: Context, { seen }: Observed, startedAt: Date): Promise<boolean> {
  const absent = seen.filter(({ deleted }) => deleted);
  return ctx.db.transaction(async (tx) => {
    for (const one of absent) {
      const stored = (await findStored(tx, one.kind, [one])).get(`${one.repositoryId}/${one.key}`);
      if (!stored || stored.deletedAt !== null) continue;
      const stamps = [stored.stamp, ...Object.values(stored.keyStamps)];
      const seenAt = Math.max(...stamps.map((stamp) => stamp.seenAt));
      if (startedAt.getTime() <= seenAt + REPLICA_LAG_MS) return true;
    }
    return false;
  });
}

/**
 * Reads one resource. "deleted": upstream says so, and `observed` holds the tombstones; "kept": upstream says nothing
 * of which that could be concluded.
 */
export async function readAnew(
  ctx: Context,
  wanted: ResourceKey,
  repository: MirroredRepository | null,
  path: string,
  priority: Priority,
): Promise<Read> {
  if (wanted.kind === "label" && repository) return readLabels(ctx, repository, wanted, path, priority);
  const answer = await ctx.upstream.get(path, { priority });
  if (answer.kind === "ok") {
    const at = repository
      ? sightingOf(ctx, repository, answer.seenAt)
      : { api: ctx.config.upstreamUrl, seenAt: answer.seenAt, read: true };
    // REST leaves out what we know of users from their own reads, and of reviews from GraphQL.
    const isSingle = ["repository", "issue", "pull_request"].includes(wanted.kind);
    return { observed: observe(wanted.kind, answer.body as Json, { ...at, isSingle }), outcome: "merged" };
  }
  if (!repository || !(await isDeletion(ctx, repository, answer, priority)))
    return { observed: joinObserved([]), outcome: "kept" };
  const place = answer.kind === "moved" && wanted.kind === "issue" ? placeIn(answer.location) : null;
  if (place) await storeTransfer(ctx.db, { repositoryId: wanted.repositoryId, number: wanted.key }, place);
  const isAbsent = answer.kind === "missing" && answer.status === 404;
  return { observed: tombstonesOf(ctx, wanted), outcome: "deleted", isAbsent };
}

/** There is no address of a label but its name, and it may be the name that has changed; so the whole list is read. */
async function readLabels(
  ctx: Context,
  repository: MirroredRepository,
  wanted: ResourceKey,
  first: string,
  priority: Priority,
): Promise<Read> {
  const observed: Observed[] = [];
  for (let path: string | null = first; path !== null; ) {
    const answer: Answer = await ctx.upstream.get(path, { priority });
    if (answer.kind !== "ok") return { observed: joinObserved(observed), outcome: "kept" };
    const at = sightingOf(ctx, repository, answer.seenAt);
    observed.push(...(answer.body as Json[]).map((label) => observe("label", label, at)));
    path = answer.links.next ?? null;
  }
  const isThere = observed.some(({ seen }) => seen.some((one) => one.kind === "label" && one.key === wanted.key));
  return isThere
    ? { observed: joinObserved(observed), outcome: "merged" }
    : { observed: joinObserved([...observed, tombstonesOf(ctx, wanted)]), outcome: "deleted", isAbsent: true };
}

/**
 * Upstream says 410 of what was deleted, and "moved" of what was transferred. Its 404 may also mean that we may not see
 * the repository any more, so the repository is asked for too.
 */
async function isDeletion(
  ctx: Context,
  repository: MirroredRepository,
  answer: Exclude<Answer, { kind: "ok" }>,
  priority: Priority,
): Promise<boolean> {
  switch (answer.kind) {
    case "unchanged":
      return false;
    case "moved":
      return true;
    case "missing":
      if (answer.status === 410) return true;
      return (
        answer.status === 404 && (await ctx.upstream.get(`/repositories/${repository.id}`, { priority })).kind === "ok"
      );
    default:
      return answer satisfies never;
  }
}

export function tombstonesOf(ctx: Pick<Context, "clock">, { kind, repositoryId, key }: ResourceKey): Observed {
  const tombstone = (of: Kind): Seen => ({
    kind: of,
    repositoryId,
    key,
    fields: {},
    deleted: true,
    extent: "whole",
    stamp: { updatedAt: 0, seenAt: ctx.clock.now().getTime(), read: true },
  });
  const isNumbered = kind === "issue" || kind === "pull_request";
  return { seen: isNumbered ? [tombstone("issue"), tombstone("pull_request")] : [tombstone(kind)], shapes: new Map() };
}

/** Stores what was read, and settles or postpones the mark in the same transaction. Answers the marks to be queued. */
async function store(ctx: Context, observed: Observed, mark: Mark | null, startedAt: Date): Promise<Mark[]> {
  return ctx.db.transaction(async (tx) => {
    const ties = marksForTies(await mergeObserved(tx, observed), startedAt).map((tie) => ({
      ...tie,
      notBefore: afterLag(startedAt),
    }));
    const asks = [...ties, ...(await marksForMergeability(tx, observed.seen, startedAt))];
    await storeMarks(tx, asks);
    if (!mark) return asks;
    const isTiedAgain = ties.some((tie) => tie.kind === mark.kind && tie.key === mark.key);
    if (isTiedAgain) return asks;
    if (startedAt.getTime() > mark.askedAt.getTime() + REPLICA_LAG_MS) {
      await settleMark(tx, mark);
      return asks;
    }
    const notBefore = afterLag(mark.askedAt);
    await postponeMark(tx, mark, notBefore);
    return [...asks, { ...mark, notBefore }];
  });
}

/** Where upstream shows the resource; null when the mirror does not know it well enough to say. */
export async function pathOf(
  ctx: Pick<Context, "db">,
  { kind, repositoryId, key }: ResourceKey,
): Promise<string | null> {
  const below = `/repositories/${repositoryId}`;
  switch (kind) {
    case "user":
      return `/user/${key}`;
    case "repository":
      return `/repositories/${key}`;
    case "label":
      return `${below}/labels?per_page=${PAGE_SIZE}`;
    case "issue":
      return `${below}/issues/${key}`;
    case "pull_request":
      return `${below}/pulls/${key}`;
    case "issue_comment":
      return `${below}/issues/comments/${key}`;
    case "review_comment":
      return `${below}/pulls/comments/${key}`;
    case "milestone": {
      const number = await numberIn(ctx, "milestones", "number", repositoryId, key);
      return number === null ? null : `${below}/milestones/${number}`;
    }
    case "review": {
      const number = await numberIn(ctx, "pull_request_reviews", "pull_number", repositoryId, key);
      return number === null ? null : `${below}/pulls/${number}/reviews/${key}`;
    }
    default:
      return kind satisfies never;
  }
}

async function numberIn(
  ctx: Pick<Context, "db">,
  table: string,
  column: string,
  repositoryId: number,
  id: number,
): Promise<number | null> {
  const { rows } = await ctx.db.execute<{ number: number }>(
    sql`select ${sql.raw(column)} as number from ${sql.raw(table)} where repository_id = ${repositoryId} and id = ${id}`,
  );
  return rows[0]?.number ?? null;
}

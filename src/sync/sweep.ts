import { sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { REPLICA_LAG_MS } from "../mirror/merge-rule.ts";
import type { Transaction } from "../mirror/store.ts";
import { enqueueAudit, enqueueCatchUp } from "../operations/queues.ts";
import { GraphqlTooHeavyError } from "../upstream/errors.ts";
import { saveValidator } from "../upstream/validators.ts";
import { alone } from "./alone.ts";
import { type Ends, hasMoved, type OurCounts, probeLists } from "./sweep-lists.ts";

/** Up to so many repositories each is simply caught up with at every interval; above, sweeps say where it is needed. */
export const SMALL_FLEET = 20;

/** GitHub docs: `nodes` takes a hundred ids; without connections a query is a point, however many of them it has. */
const IDS_A_FIELD = 100;
const FIELDS_A_QUERY = 10;
/** How many repositories' lists are asked for at once. */
const PROBES_AT_ONCE = 8;
/** How long a repository whose webhooks were lost is asked more often. */
const SUSPECTED_MS = 3_600_000;
/** A webhook that came so long before the last sweep may have told of what that one was too early to see. */
const TOLD_WITHIN_MS = 60_000;

/** What moves when a repository does. */
interface Shown {
  nameWithOwner: string;
  updatedAt: string;
  pushedAt: string | null;
  isArchived: boolean;
  isPrivate: boolean;
}

/**
 * Asks about all repositories that are due what moves when they do, and for a catch-up of those that moved. The
 * repositories themselves are asked for by GraphQL, a point for a thousand; then the ends of their lists, conditionally,
 * which costs nothing while they stay the same. What the pace of requests holds up goes on where it stopped.
 */
export async function sweep(ctx: Context, signal?: AbortSignal): Promise<{ swept: number; changed: number }> {
  return (await alone(ctx, "sweep", () => sweepDue(ctx, signal))) ?? { swept: 0, changed: 0 };
}

async function sweepDue(ctx: Context, signal: AbortSignal | undefined): Promise<{ swept: number; changed: number }> {
  const changed = new Set<number>();
  let swept = 0;
  try {
    await sweepRepositories(ctx, changed);
    const due = await findListsDue(ctx);
    while (swept < due.length && !signal?.aborted) {
      const some = due.slice(swept, swept + PROBES_AT_ONCE);
      const moved = await Promise.all(some.map((one) => sweepLists(ctx, one)));
      for (const [index, { repositoryId }] of some.entries()) if (moved[index]) changed.add(repositoryId);
      swept += some.length;
    }
  } finally {
    // Also when the quota ends half-way: what was found by then need not wait.
    await enqueueChanged(ctx);
  }
  return { swept, changed: changed.size };
}

interface DueRepository {
  id: number;
  nodeId: string;
  /** As it was stored; null: never asked for, or not shown. */
  shown: string | null;
  shownAt: Date | null;
}

async function sweepRepositories(ctx: Context, changed: Set<number>): Promise<void> {
  const due = await findDue(ctx);
  const byId = new Map(due.map((one) => [one.id, one]));
  // Each group is asked about by who sees all of it: an App's installations see only their own.
  const groups = await ctx.upstream.groups([...byId.keys()]);
  for (const some of groups.flatMap((ids) => batches(ids.flatMap((id) => byId.get(id) ?? [])))) {
    const now = ctx.clock.now();
    const { shown, unclear } = await readShown(ctx, some);
    const rows: { one: DueRepository; text: string | null }[] = [];
    for (const one of some) {
      const answer = shown.get(one.id);
      // Neither shown nor said to be absent: the next sweep asks again.
      if (answer || !unclear) rows.push({ one, text: answer ? JSON.stringify(answer) : null });
    }
    const moved = rows.filter(({ one, text }) => text !== one.shown || one.shownAt === null);
    for (const { one } of moved) changed.add(one.id);
    await ctx.db.transaction(async (tx) => {
      await tx.execute(sql`insert into sweeps (repository_id, shown, shown_at, changed_at)
        select id, shown, ${now.toISOString()}::timestamptz, case when id = any(${sql.param(moved.map(({ one }) => one.id))}::bigint[]) then ${now.toISOString()}::timestamptz end
        from unnest(${sql.param(rows.map(({ one }) => one.id))}::bigint[], ${sql.param(rows.map(({ text }) => text))}::text[]) as x(id, shown) order by id
        on conflict (repository_id) do update set shown = excluded.shown, shown_at = excluded.shown_at,
          changed_at = coalesce(excluded.changed_at, sweeps.changed_at)`);
      const sinces = moved.flatMap(({ one }) => (one.shownAt ? [{ id: one.id, since: one.shownAt }] : []));
      await noteUntold(tx, sinces, now);
    });
  }
}

function batches(due: DueRepository[]): DueRepository[][] {
  const size = IDS_A_FIELD * FIELDS_A_QUERY;
  return Array.from({ length: Math.ceil(due.length / size) }, (_, at) => due.slice(at * size, (at + 1) * size));
}

/** Parameters: what was asked for before is due; repositories under suspicion since the second, if they were before the third. */
function dueSince({ clock, config }: Pick<Context, "clock" | "config">, intervalMs: number): [Date, Date, Date] {
  const now = clock.now().getTime();
  // Half a tick of tolerance: a schedule is never on the moment.
  const slack = config.sweepIntervalMs / 8;
  return [
    new Date(now - intervalMs + slack),
    new Date(now - SUSPECTED_MS),
    new Date(now - config.sweepIntervalMs / 4 + slack),
  ];
}

async function findDue(ctx: Context): Promise<DueRepository[]> {
  const { rows } = await ctx.db.$client.query<{
    id: string;
    node_id: string;
    shown: string | null;
    shown_at: Date | null;
  }>(
    `select r.id, r.node_id, w.shown, w.shown_at from repository_syncs s join repositories r on r.id = s.repository_id
      left join sweeps w on w.repository_id = s.repository_id
      where s.state = 'live' and r.node_id is not null
        and (w.shown_at is null or w.shown_at <= $1 or (w.untold_at > $2 and w.shown_at <= $3)) order by r.id`,
    // Unlike the lists it is never free, and less happens to it.
    dueSince(ctx, ctx.config.sweepIntervalMs * 1.25),
  );
  return rows.map((row) => ({ id: Number(row.id), nodeId: row.node_id, shown: row.shown, shownAt: row.shown_at }));
}

interface Answered extends Shown {
  databaseId: number;
}

/** `unclear`: something could not be resolved, so that an absent repository is not known to be absent. */
async function readShown(
  ctx: Context,
  some: DueRepository[],
): Promise<{ shown: Map<number, Shown>; unclear: boolean }> {
  try {
    return await readShownAtOnce(ctx, some);
  } catch (error) {
    if (!(error instanceof GraphqlTooHeavyError) || some.length === 1) throw error;
    const middle = Math.ceil(some.length / 2);
    const halves = [await readShown(ctx, some.slice(0, middle)), await readShown(ctx, some.slice(middle))];
    return {
      shown: new Map(halves.flatMap(({ shown }) => [...shown])),
      unclear: halves.some(({ unclear }) => unclear),
    };
  }
}

async function readShownAtOnce(
  ctx: Context,
  some: DueRepository[],
): Promise<{ shown: Map<number, Shown>; unclear: boolean }> {
  const groups = Array.from({ length: Math.ceil(some.length / IDS_A_FIELD) }, (_, index) =>
    some.slice(index * IDS_A_FIELD, (index + 1) * IDS_A_FIELD),
  );
  const document = `query(${groups.map((_, index) => `$i${index}: [ID!]!`).join(", ")}) {
    rateLimit { cost limit nodeCount remaining resetAt used }
    ${groups.map((_, index) => `n${index}: nodes(ids: $i${index}) { ... on Repository { databaseId nameWithOwner updatedAt pushedAt isArchived isPrivate } }`).join("\n")} }`;
  const variables = Object.fromEntries(groups.map((group, index) => [`i${index}`, group.map(({ nodeId }) => nodeId)]));
  const { data, errors } = await ctx.upstream.graphql<Record<string, unknown>>(document, variables, {
    priority: "catch-up",
    ...(some[0] ? { repository: some[0].id } : {}),
  });
  const shown = new Map<number, Shown>();
  for (const index of groups.keys()) {
    for (const one of (data[`n${index}`] ?? []) as (Answered | null)[]) {
      if (!one) continue;
      const { databaseId, nameWithOwner, updatedAt, pushedAt, isArchived, isPrivate } = one;
      shown.set(databaseId, { nameWithOwner, updatedAt, pushedAt, isArchived, isPrivate });
    }
  }
  return { shown, unclear: errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN") };
}

interface DueLists {
  repositoryId: number;
  ours: OurCounts;
  /** null: they were never asked for. */
  ends: Ends | null;
  sweptAt: Date | null;
  isArchived: boolean;
  isAuditUnderWay: boolean;
}

/** What was seen by us so shortly before may be unknown to the replica that answers. */
const SETTLED = "seen_at < $4";

/** The longest neglected first. */
async function findListsDue(ctx: Context): Promise<DueLists[]> {
  const count = (table: string, more = "") =>
    `(select count(*)::int from ${table} t where t.repository_id = w.repository_id and t.deleted_at is null and t.${SETTLED} ${more})`;
  const { rows } = await ctx.db.$client.query<
    OurCounts & {
      repository_id: string;
      lists: string | null;
      swept_at: Date | null;
      shown: string;
      audit_under_way: boolean;
    }
  >(
    `select w.repository_id, w.lists, w.swept_at, w.shown, coalesce(a.started_at is not null and a.finished_at is null, false) as audit_under_way,
        ${count("labels")} as labels, ${count("milestones")} as milestones, ${count("issues", "and t.id is not null")} as issues,
        ${count("issue_comments")} as comments, ${count("pull_request_review_comments")} as "reviewComments"
      from sweeps w join repository_syncs s using (repository_id) left join audits a using (repository_id)
      where s.state = 'live' and w.shown is not null
        and (w.swept_at is null or w.swept_at <= $1 or (w.untold_at > $2 and w.swept_at <= $3))
      order by w.swept_at nulls first, w.repository_id`,
    [...dueSince(ctx, ctx.config.sweepIntervalMs), new Date(ctx.clock.now().getTime() - REPLICA_LAG_MS)],
  );
  return rows.map(({ repository_id, lists, swept_at, shown, audit_under_way, ...ours }) => ({
    repositoryId: Number(repository_id),
    ours,
    ends: lists === null ? null : (JSON.parse(lists) as Ends),
    sweptAt: swept_at,
    isArchived: (JSON.parse(shown) as Shown).isArchived,
    isAuditUnderWay: audit_under_way,
  }));
}

/** Answers whether one of the lists moved. What was asked and what that says are stored together. */
async function sweepLists(ctx: Context, due: DueLists): Promise<boolean> {
  const { repositoryId, ours, sweptAt } = due;
  const now = ctx.clock.now();
  // What is archived can only be read, and that it no longer is shows in the repository.
  const isFrozen = due.isArchived && due.ends !== null;
  const probed = isFrozen ? null : await probeLists(ctx, { repositoryId, ours, before: due.ends });
  const ends = probed?.ends ?? due.ends;
  const moved = probed !== null && hasMoved(due.ends, probed.ends);
  await ctx.db.transaction(async (tx) => {
    for (const validator of probed?.validators ?? []) await saveValidator(tx, validator);
    // An audit that is under way may be past the list, so the next sweep has to find the difference again.
    const stored = due.isAuditUnderWay && probed?.needsAudit ? forgetting(probed.ends) : ends;
    await tx.execute(sql`update sweeps set lists = ${JSON.stringify(stored)}, swept_at = ${now.toISOString()}::timestamptz,
      changed_at = case when ${moved} then ${now.toISOString()}::timestamptz else changed_at end where repository_id = ${repositoryId}`);
    // The first sweep finds everything new, and so tells nothing of the webhooks.
    if (moved && sweptAt !== null) await noteUntold(tx, [{ id: repositoryId, since: sweptAt }], now);
  });
  if (probed?.needsAudit) await enqueueAudit(ctx, { repositoryId });
  return moved;
}

function forgetting(ends: Ends): Ends {
  return Object.fromEntries(Object.entries(ends).map(([path, end]) => [path, { ...end, audited: false }]));
}

/** Of what changed since, did no webhook tell? Then such repositories are asked more often for a while. */
async function noteUntold(tx: Transaction, changes: { id: number; since: Date }[], now: Date): Promise<void> {
  if (changes.length === 0) return;
  const sinces = changes.map(({ since }) => new Date(since.getTime() - TOLD_WITHIN_MS).toISOString());
  await tx.execute(sql`update sweeps w set untold_at = ${now.toISOString()}::timestamptz
    from unnest(${sql.param(changes.map(({ id }) => id))}::bigint[], ${sql.param(sinces)}::timestamptz[]) as x(id, since)
    where w.repository_id = x.id and not exists (select from deliveries d where d.repository_id = x.id and d.received_at > x.since)`);
}

/** Asks for a catch-up wherever the last one began before the change was found: what Redis forgot is asked for again. */
async function enqueueChanged(ctx: Context): Promise<void> {
  const { rows } = await ctx.db.$client.query<{ repository_id: string }>(
    `select w.repository_id from sweeps w join repository_syncs s using (repository_id)
      where s.state = 'live' and w.changed_at is not null and (s.confirmed_at is null or s.confirmed_at <= w.changed_at)`,
  );
  for (const { repository_id } of rows) await enqueueCatchUp(ctx, { repositoryId: Number(repository_id) });
}

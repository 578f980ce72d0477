import { alone } from "../../../db/alone.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Transaction } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { enqueueAudit, enqueueCatchUp } from "../../queues/enqueue.ts";
import { GraphqlTooHeavyError } from "../../upstream/client/errors.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import {
  digestOf,
  type End,
  type Ends,
  hasMoved,
  judge,
  type List,
  type OurCounts,
  type Probed,
  probeLists,
} from "./sweep-lists.ts";

/** Up to so many repositories each is simply caught up with at every interval; above, sweeps say where it is needed. */
export const SMALL_FLEET = 20;
/**
 * Above so many, REST's pace (900 requests a minute, four or five lists each) does not suffice for all lists at every
 * interval. Then points are spent on milestones, seven for a thousand repositories.
 */
const LARGE_FLEET = 600;

/** GitHub docs: `nodes` takes a hundred ids; without connections a query is a point, however many of them it has. */
const IDS_A_FIELD = 100;
const FIELDS_A_QUERY = 10;
/** GitHub docs: a connection in each is a request each, and requests are divided by a hundred and rounded. */
const CONNECTIONS_A_POINT = 145;
/** The newest by change, so that of several that change within one of upstream's seconds none is missed. */
const MILESTONES = `milestones(first: 5, orderBy: { field: UPDATED_AT, direction: DESC }) {
  totalCount nodes { number title description state dueOn updatedAt } }`;
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
  /** Only of large fleets. */
  milestones?: End;
}

export interface SweepOptions {
  signal?: AbortSignal | undefined;
  /** From how many repositories on points are spent on what REST's pace leaves no room for. */
  largeFleet?: number;
}

/**
 * Asks about all repositories that are due what moves when they do, and for a catch-up of those that moved. The
 * repositories themselves are asked for by GraphQL, a point for a thousand; then the ends of their lists, conditionally,
 * which costs nothing while they stay the same. What the pace of requests holds up goes on where it stopped.
 */
export async function sweep(ctx: Context, options: SweepOptions = {}): Promise<{ swept: number; changed: number }> {
  return (await alone(ctx, "sweep", () => sweepDue(ctx, options))) ?? { swept: 0, changed: 0 };
}

async function sweepDue(
  ctx: Context,
  { signal, largeFleet = LARGE_FLEET }: SweepOptions,
): Promise<{ swept: number; changed: number }> {
  const changed = new Set<number>();
  let swept = 0;
  try {
    await sweepRepositories(ctx, changed, await asksMilestones(ctx, largeFleet));
    const due = await findListsDue(ctx);
    while (swept < due.length && !signal?.aborted) {
      const some = due.slice(swept, swept + PROBES_AT_ONCE);
      for (const repositoryId of await sweepLists(ctx, some)) changed.add(repositoryId);
      swept += some.length;
    }
  } finally {
    // Also when the quota ends half-way: what was found by then need not wait.
    await enqueueChanged(ctx);
  }
  return { swept, changed: changed.size };
}

/** Whether milestones are asked for with the repositories. An App is told of changes, so there the free question will do. */
async function asksMilestones({ db, config }: Context, largeFleet: number): Promise<boolean> {
  if (config.appId !== null) return false;
  const rows = await db.query<{ live: number }>(sql`
    select count(*)::int as live from repository_syncs where state = 'live'`);
  return (rows[0]?.live ?? 0) >= largeFleet;
}

interface DueRepository {
  id: number;
  nodeId: string;
  /** As it was stored; null: never asked for, or not shown. */
  shown: Shown | null;
  shownAt: Date | null;
  /** How many we have. */
  milestones: number;
  isAuditUnderWay: boolean;
}

async function sweepRepositories(ctx: Context, changed: Set<number>, withMilestones: boolean): Promise<void> {
  const due = await findDue(ctx);
  const byId = new Map(due.map((one) => [one.id, one]));
  // Each group is asked about by who sees all of it: an App's installations see only their own.
  const groups = await ctx.upstream.groups([...byId.keys()]);
  const size = withMilestones ? CONNECTIONS_A_POINT : IDS_A_FIELD * FIELDS_A_QUERY;
  for (const some of groups.flatMap((ids) =>
    batches(
      ids.flatMap((id) => byId.get(id) ?? []),
      size,
    ),
  )) {
    const askedAt = ctx.clock.now();
    const { shown, unclear } = await readShown(ctx, some, withMilestones);
    const seenAt = ctx.clock.now();
    const rows: { one: DueRepository; shown: Shown | null }[] = [];
    const amiss: number[] = [];
    for (const one of some) {
      const answer = shown.get(one.id);
      // Neither shown nor said to be absent: the next sweep asks again.
      if (!answer && unclear) continue;
      if (answer?.milestones) {
        answer.milestones.ours = one.milestones;
        if (judge(answer.milestones, one.shown?.milestones)) {
          amiss.push(one.id);
          // An audit that is under way may be past them, so the next sweep has to find the difference again.
          if (one.isAuditUnderWay) answer.milestones.audited = false;
        }
      }
      rows.push({ one, shown: answer ?? null });
    }
    const moved = rows.filter((row) => signOf(row.shown) !== signOf(row.one.shown) || row.one.shownAt === null);
    for (const { one } of moved) changed.add(one.id);
    await ctx.db.transaction(async (tx) => {
      const ids = rows.map(({ one }) => one.id);
      const shown = rows.map((row) => row.shown && JSON.stringify(row.shown));
      await tx.query(sql`
        insert into sweeps (repository_id, shown, shown_at, changed_at)
          select id, shown, ${askedAt}::timestamptz,
              case when id = any(${moved.map(({ one }) => one.id)}::bigint[]) then ${seenAt}::timestamptz end
            from unnest(${ids}::bigint[], ${shown}::text[]) as x(id, shown) order by id
          on conflict (repository_id) do update set shown = excluded.shown, shown_at = excluded.shown_at,
            changed_at = coalesce(excluded.changed_at, sweeps.changed_at)`);
      const sinces = moved.flatMap(({ one }) => (one.shownAt ? [{ id: one.id, since: one.shownAt }] : []));
      await noteUntold(tx, sinces, seenAt);
    });
    for (const repositoryId of amiss) await enqueueAudit(ctx, { repositoryId });
  }
}

/** What is the same as long as upstream shows no change. Pure. */
function signOf(shown: Shown | null): string {
  return JSON.stringify(shown && { ...shown, milestones: shown.milestones?.digest });
}

function batches(due: DueRepository[], size: number): DueRepository[][] {
  return Array.from({ length: Math.ceil(due.length / size) }, (_, at) => due.slice(at * size, (at + 1) * size));
}

/** Whether `askedAt`, when a row `w` was last asked for, is so long ago that it is due. Repositories under suspicion are asked more often. */
function isDue({ clock, config }: Pick<Context, "clock" | "config">, askedAt: Sql, intervalMs: number): Sql {
  const now = clock.now().getTime();
  // Half a tick of tolerance: a schedule is never on the moment.
  const slack = config.sweepIntervalMs / 8;
  const usual = new Date(now - intervalMs + slack);
  const suspected = new Date(now - config.sweepIntervalMs / 4 + slack);
  return sql`(${askedAt} is null or ${askedAt} <= ${usual}
    or (w.untold_at > ${new Date(now - SUSPECTED_MS)} and ${askedAt} <= ${suspected}))`;
}

async function findDue(ctx: Context): Promise<DueRepository[]> {
  const { count, isAuditUnderWay } = oursOf(ctx);
  // Unlike the lists it is never free, and less happens to it.
  const due = isDue(ctx, sql`w.shown_at`, ctx.config.sweepIntervalMs * 1.25);
  const rows = await ctx.db.query<{
    id: string;
    node_id: string;
    shown: string | null;
    shown_at: Date | null;
    milestones: number;
    audit_under_way: boolean;
  }>(sql`
    select r.id, r.node_id, w.shown, w.shown_at, ${count("milestones")} as milestones,
        ${isAuditUnderWay} as audit_under_way
      from repository_syncs s join repositories r on r.id = s.repository_id
      left join sweeps w on w.repository_id = s.repository_id left join audits a on a.repository_id = s.repository_id
      where s.state = 'live' and r.node_id is not null and ${due} order by r.id`);
  return rows.map((row) => ({
    id: Number(row.id),
    nodeId: row.node_id,
    shown: row.shown === null ? null : (JSON.parse(row.shown) as Shown),
    shownAt: row.shown_at,
    milestones: row.milestones,
    isAuditUnderWay: row.audit_under_way,
  }));
}

interface Answered extends Omit<Shown, "milestones"> {
  databaseId: number;
  milestones?: { totalCount: number; nodes: unknown[] } | null;
}

/** `unclear`: something could not be resolved, so that an absent repository is not known to be absent. */
async function readShown(
  ctx: Context,
  some: DueRepository[],
  withMilestones: boolean,
): Promise<{ shown: Map<number, Shown>; unclear: boolean }> {
  try {
    return await readShownAtOnce(ctx, some, withMilestones);
  } catch (error) {
    if (!(error instanceof GraphqlTooHeavyError) || some.length === 1) throw error;
    const middle = Math.ceil(some.length / 2);
    const halves = [
      await readShown(ctx, some.slice(0, middle), withMilestones),
      await readShown(ctx, some.slice(middle), withMilestones),
    ];
    return {
      shown: new Map(halves.flatMap(({ shown }) => [...shown])),
      unclear: halves.some(({ unclear }) => unclear),
    };
  }
}

async function readShownAtOnce(
  ctx: Context,
  some: DueRepository[],
  withMilestones: boolean,
): Promise<{ shown: Map<number, Shown>; unclear: boolean }> {
  const groups = Array.from({ length: Math.ceil(some.length / IDS_A_FIELD) }, (_, index) =>
    some.slice(index * IDS_A_FIELD, (index + 1) * IDS_A_FIELD),
  );
  const document = `query(${groups.map((_, index) => `$i${index}: [ID!]!`).join(", ")}) {
    ${RATE_LIMIT}
    ${groups.map((_, index) => `n${index}: nodes(ids: $i${index}) { ... on Repository { databaseId nameWithOwner updatedAt pushedAt isArchived isPrivate ${withMilestones ? MILESTONES : ""} } }`).join("\n")} }`;
  const variables = Object.fromEntries(groups.map((group, index) => [`i${index}`, group.map(({ nodeId }) => nodeId)]));
  const { data, errors } = await ctx.upstream.graphql<Record<string, unknown>>(document, variables, {
    priority: "catch-up",
    ...(some[0] ? { repository: some[0].id } : {}),
  });
  const shown = new Map<number, Shown>();
  let unclear = errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN");
  for (const index of groups.keys()) {
    for (const one of (data[`n${index}`] ?? []) as (Answered | null)[]) {
      if (!one) continue;
      const { databaseId, milestones, nameWithOwner, updatedAt, pushedAt, isArchived, isPrivate } = one;
      const plain = { nameWithOwner, updatedAt, pushedAt, isArchived, isPrivate };
      // Upstream leaves out what it has no time for.
      if (withMilestones && !milestones) unclear = true;
      else shown.set(databaseId, milestones ? { ...plain, milestones: endOf(milestones) } : plain);
    }
  }
  return { shown, unclear };
}

function endOf({ totalCount, nodes }: { totalCount: number; nodes: unknown[] }): End {
  return { digest: digestOf(nodes), theirs: totalCount, ours: 0, audited: false };
}

interface DueLists {
  repositoryId: number;
  ours: OurCounts;
  /** null: they were never asked for. */
  ends: Ends | null;
  sweptAt: Date | null;
  shown: Shown;
  isAuditUnderWay: boolean;
}

/** What we have of the repository of a row `s`, as far as each of upstream's replicas knows it, and whether its audit `a` runs. */
function oursOf({ clock }: Pick<Context, "clock">) {
  const settledBefore = sql.value(new Date(clock.now().getTime() - REPLICA_LAG_MS));
  return {
    count: (table: string, more = sql``) => sql`
      (select count(*)::int from ${sql.identifier(table)} t
        where t.repository_id = s.repository_id and t.deleted_at is null and t.seen_at < ${settledBefore} ${more})`,
    isAuditUnderWay: sql`coalesce(a.started_at is not null and a.finished_at is null, false)`,
  };
}

/** The longest neglected first. */
async function findListsDue(ctx: Context): Promise<DueLists[]> {
  const { count, isAuditUnderWay } = oursOf(ctx);
  const rows = await ctx.db.query<
    OurCounts & {
      repository_id: string;
      lists: string | null;
      swept_at: Date | null;
      shown: string;
      audit_under_way: boolean;
    }
  >(sql`
    select w.repository_id, w.lists, w.swept_at, w.shown, ${isAuditUnderWay} as audit_under_way,
        ${count("labels")} as labels, ${count("milestones")} as milestones,
        ${count("issues", sql`and t.id is not null`)} as issues, ${count("issue_comments")} as comments,
        ${count("pull_request_review_comments")} as "reviewComments"
      from sweeps w join repository_syncs s using (repository_id) left join audits a using (repository_id)
      where s.state = 'live' and w.shown is not null and ${isDue(ctx, sql`w.swept_at`, ctx.config.sweepIntervalMs)}
      order by w.swept_at nulls first, w.repository_id`);
  return rows.map(({ repository_id, lists, swept_at, shown, audit_under_way, ...ours }) => ({
    repositoryId: Number(repository_id),
    ours,
    ends: lists === null ? null : (JSON.parse(lists) as Ends),
    sweptAt: swept_at,
    shown: JSON.parse(shown) as Shown,
    isAuditUnderWay: audit_under_way,
  }));
}

/** How the lists of one repository were found. */
interface Look {
  due: DueLists;
  probed: Probed | null;
  ends: Ends | null;
  hasMoved: boolean;
}

/**
 * Answers in which of the repositories one of the lists moved. What was asked and what that says are stored together, also where
 * others could not be asked.
 */
async function sweepLists(ctx: Context, some: readonly DueLists[]): Promise<number[]> {
  const askedAt = ctx.clock.now();
  const settled = await Promise.allSettled(some.map((due) => lookAt(ctx, due)));
  // A catch-up that began before that may have been past what changed.
  const seenAt = ctx.clock.now();
  const looks = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const moved = looks.filter((look) => look.hasMoved);
  await ctx.db.transaction(async (tx) => {
    for (const { probed } of looks)
      for (const validator of probed?.validators ?? []) await saveValidator(tx, validator);
    const ids = looks.map(({ due }) => due.repositoryId);
    const lists = looks.map(({ due, probed, ends }) =>
      // An audit that is under way may be past the list, so the next sweep has to find the difference again.
      JSON.stringify(due.isAuditUnderWay && probed?.needsAudit ? forgetting(probed.ends) : ends),
    );
    const haveMoved = looks.map((look) => look.hasMoved);
    await tx.query(sql`
      update sweeps w set lists = x.lists, swept_at = ${askedAt},
          changed_at = case when x.moved then ${seenAt}::timestamptz else w.changed_at end
        from unnest(${ids}::bigint[], ${lists}::text[], ${haveMoved}::boolean[]) as x(id, lists, moved)
        where w.repository_id = x.id`);
    // The first sweep finds everything new, and so tells nothing of the webhooks.
    const sinces = moved.flatMap(({ due }) => (due.sweptAt ? [{ id: due.repositoryId, since: due.sweptAt }] : []));
    await noteUntold(tx, sinces, seenAt);
  });
  for (const { due, probed } of looks)
    if (probed?.needsAudit) await enqueueAudit(ctx, { repositoryId: due.repositoryId });
  for (const one of settled) if (one.status === "rejected") throw one.reason;
  return moved.map(({ due }) => due.repositoryId);
}

async function lookAt(ctx: Context, due: DueLists): Promise<Look> {
  const { repositoryId, ours, shown } = due;
  // What is archived can only be read, and that it no longer is shows in the repository.
  const isFrozen = shown.isArchived && due.ends !== null;
  const except: List[] = shown.milestones ? ["milestones"] : [];
  const probed = isFrozen ? null : await probeLists(ctx, { repositoryId, ours, before: due.ends, except });
  return {
    due,
    probed,
    ends: probed?.ends ?? due.ends,
    hasMoved: probed !== null && hasMoved(due.ends, probed.ends),
  };
}

function forgetting(ends: Ends): Ends {
  return Object.fromEntries(Object.entries(ends).map(([path, end]) => [path, { ...end, audited: false }]));
}

/** Of what changed since, did no webhook tell? Then such repositories are asked more often for a while. */
async function noteUntold(tx: Transaction, changes: { id: number; since: Date }[], now: Date): Promise<void> {
  if (changes.length === 0) return;
  const ids = changes.map(({ id }) => id);
  const sinces = changes.map(({ since }) => new Date(since.getTime() - TOLD_WITHIN_MS));
  await tx.query(sql`
    update sweeps w set untold_at = ${now} from unnest(${ids}::bigint[], ${sinces}::timestamptz[]) as x(id, since)
      where w.repository_id = x.id
        and not exists (select from deliveries d where d.repository_id = x.id and d.received_at > x.since)`);
}

/**
 * Asks for a catch-up wherever the last one began before each of upstream's replicas knew of the change: what Redis forgot is
 * asked for again, and so is what a replica that lags may have hidden.
 */
async function enqueueChanged(ctx: Context): Promise<void> {
  const lag = `${REPLICA_LAG_MS} milliseconds`;
  const rows = await ctx.db.query<{ repository_id: string }>(sql`
    select w.repository_id from sweeps w join repository_syncs s using (repository_id)
      where s.state = 'live' and w.changed_at is not null
        and (s.confirmed_at is null or s.confirmed_at <= w.changed_at + ${lag}::interval)`);
  for (const { repository_id } of rows) await enqueueCatchUp(ctx, { repositoryId: Number(repository_id) });
}

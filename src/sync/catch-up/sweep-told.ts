import { and, eq } from "drizzle-orm";
import type { Queries, Transaction } from "../../../db/database.ts";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, parseStored, wholeOf } from "../../json.ts";
import { fittingTime } from "../../mirror/store/fitting.ts";
import { type Mark, storeMarks } from "../../mirror/store/marks.ts";
import { CLOCKS_APART_MS } from "../../mirror/store/merge-rule.ts";
import type { Shard } from "../../queues/jobs.ts";
import { enqueueAudits } from "../../queues/queues.ts";
import { repositorySyncs, sweeps } from "../../schema.ts";
import { inHalves } from "../../upstream/client/bearable-sizes.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { asSent, list, nullable } from "../../upstream/protocol/field-readers.ts";
import { IDS_A_FIELD, RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import { enqueueMarks } from "../marks/marks.ts";
import type { CredentialWait } from "../problems/causes.ts";
import { eachAlone } from "../problems/isolated.ts";
import { earlier } from "../reads/pages.ts";
import { isInShard } from "../turns/shards.ts";
import { moveWatermarksBack } from "./followed-lists.ts";
import {
  AHEAD,
  findUnheld,
  type HeldChanges,
  NEWEST_CHANGES,
  type NewestChanges,
  newestChanges,
  REVIEW_COUNT,
  type ReviewedPull,
  reviewedPulls,
  SHOWN,
  toldUntil,
  type UnheldRow,
} from "./newest-changes.ts";
import { figuresAfter, isSuspected, isSweepDue, isTold, othersUntoldAt, type RepositoryFigures } from "./sweep-due.ts";
import { batches, FIGURES, readFigures } from "./sweep-repositories.ts";
import { EXPLAINED, stillUnexplained, type Unexplained } from "./unexplained.ts";

/** A repository of which webhooks tell. */
interface ToldRepository {
  id: number;
  nodeId: string;
  /** The rows of its newest changes were last held up to then, or read. By upstream's clock. */
  heldUntil: Date | null;
  /** When it was last asked about, by our clock. */
  shownAt: Date;
  /** When its last catch-up began, by our clock. */
  caughtUpAt: Date | null;
  before: Unheld | null;
  /** When many repositories were found to lose webhooks, by our clock. */
  othersUntoldAt: Date | null;
  /** What upstream showed of it before. */
  shown: RepositoryFigures | null;
  /** Where webhooks were lost lately: the node ids of the pull requests whose reviews are to be counted. */
  counted: readonly string[];
}

/** What the last look found that the mirror does not hold. */
interface Unheld extends Unexplained {
  rows: string[];
  surplus: HeldChanges["surplus"];
}

/**
 * Asks GraphQL for the newest changes of the repositories of which webhooks tell, and whether the mirror holds them. If
 * it does, nothing was lost, and nothing is read. If not, a catch-up is asked for; and an audit, if that does not help.
 */
export async function sweepTold(
  ctx: Context,
  changed: Set<number>,
  { shard, signal }: { shard: Shard; signal?: AbortSignal | undefined },
): Promise<{ swept: Set<number>; waiting: CredentialWait | null }> {
  const due = await findToldDue(ctx, shard);
  const byId = new Map(due.map((one) => [one.id, one]));
  const groups = await ctx.upstream.groups([...byId.keys()]);
  const batchesOfAll = groups.flatMap((ids, group) =>
    batches(
      ids.flatMap((id) => byId.get(id) ?? []),
      IDS_A_FIELD,
    ).map((some) => ({ group, some })),
  );
  const swept = new Set<number>();
  const answered: { id: number; fault: UpstreamUnavailableError | null }[] = [];
  const waiting = await eachAlone(ctx, batchesOfAll, {
    subjectOf: ({ some }) => ({ task: "sweep", key: `from ${some[0]?.id}`, repositoryId: some[0]?.id ?? null }),
    groupOf: ({ group }) => group,
    signal,
    work: async ({ some }) => {
      for (const answer of await inHalves(some, (part) => readToldAtOnce(ctx, part))) {
        for (const id of await storeToldLooks(ctx, answer)) changed.add(id);
        for (const { due: one } of answer.looks) swept.add(one.id);
        for (const { id } of answer.asked) answered.push({ id, fault: answer.faults.get(id) ?? null });
      }
    },
  });
  await eachAlone(ctx, answered, {
    subjectOf: ({ id }) => ({ task: "sweep", key: `fields of ${id}`, repositoryId: id }),
    work: async ({ fault }) => {
      if (fault) throw fault;
    },
  });
  return { swept, waiting };
}

async function findToldDue(ctx: Context, shard: Shard): Promise<ToldRepository[]> {
  const rows = await ctx.db.query<
    Omit<ToldRepository, "before" | "shown"> & Record<"before" | "shown", string | null>
  >(sql`
    with told as (
      select r.id, r.node_id, w.shown_at, s.caught_up_at, w.unheld, w.shown, w.untold_at,
          greatest(w.held_until, least(s.issues_synced_at, s.pulls_synced_at)) as held_until,
          ${othersUntoldAt(ctx)} as others_untold_at
        from repository_syncs s join repositories r on r.id = s.repository_id and ${isInShard(sql`r.id`, shard)}
        join sweeps w on w.repository_id = s.repository_id and ${isInShard(sql`w.repository_id`, shard)}
        where ${isInShard(sql`s.repository_id`, shard)} and s.state = 'live' and r.node_id is not null and ${isTold(ctx)})
    select w.id, w.node_id as "nodeId", w.shown_at as "shownAt", w.caught_up_at as "caughtUpAt",
        w.held_until as "heldUntil", w.unheld as before, w.shown, w.others_untold_at as "othersUntoldAt",
        case when ${isSuspected(ctx)} then array(select p.node_id from pull_requests p
          where p.repository_id = w.id and p.updated_at >= w.held_until and p.node_id is not null and p.deleted_at is null
          order by p.updated_at desc limit ${SHOWN}) else '{}' end as counted
      from told w where ${isSweepDue(ctx, sql`w.shown_at`, ctx.config.sweepIntervalMs * 1.25)} order by w.id`);
  return rows.map((row) => ({
    ...row,
    before: row.before === null ? null : parseStored<Unheld>(row.before),
    shown: row.shown === null ? null : parseStored<RepositoryFigures>(row.shown),
  }));
}

interface ToldLook {
  due: ToldRepository;
  figures: RepositoryFigures;
  newest: NewestChanges;
  reviewed: ReviewedPull[];
}

interface ToldAnswer {
  asked: readonly ToldRepository[];
  looks: ToldLook[];
  /** Repositories that upstream showed in another shape than its schema says. */
  faults: Map<number, UpstreamUnavailableError>;
  /** Repositories that upstream does not show. */
  absent: number[];
  askedAt: Date;
  /** Upstream's clock, or the time up to which a mirror has confirmed what it shows. */
  upstreamNow: Date;
}

async function readToldAtOnce(ctx: Context, asked: readonly ToldRepository[]): Promise<ToldAnswer> {
  const askedAt = ctx.clock.now();
  const counted = asked.flatMap((one) => (one.counted.length > 0 ? [{ alias: `p${one.id}`, ...one }] : []));
  const declared = counted.map(({ alias }) => `, $${alias}: [ID!]!`).join("");
  const pulls = counted.map(
    ({ alias }) => `${alias}: nodes(ids: $${alias}) { ... on PullRequest { ${REVIEW_COUNT} } }`,
  );
  const document = `query($ids: [ID!]!${declared}) { ${RATE_LIMIT}
    nodes(ids: $ids) { ... on Repository { databaseId ${FIGURES} ${NEWEST_CHANGES} } } ${pulls.join("\n")} }`;
  const variables = {
    ids: asked.map(({ nodeId }) => nodeId),
    ...Object.fromEntries(counted.map((one) => [one.alias, [...one.counted]])),
  };
  const { data, errors, upstreamNow, asOf } = await ctx.upstream.graphql(document, variables, {
    priority: "catch-up",
    ...(asked[0] ? { repository: asked[0].id } : {}),
  });
  const byId = new Map(asked.map((one) => [one.id, one]));
  const looks: ToldLook[] = [];
  const faults = new Map<number, UpstreamUnavailableError>();
  for (const node of nullable(list(asSent))(data.nodes, "nodes") ?? []) {
    const due = byId.get(wholeOf(objectOf(node).databaseId) ?? Number.NaN);
    if (!due) continue;
    try {
      looks.push({
        due,
        figures: figuresAfter(due.shown, readFigures(node, "nodes"), askedAt),
        newest: newestChanges(node),
        reviewed: reviewedPulls(data[`p${due.id}`], due.id),
      });
    } catch (error) {
      if (!(error instanceof UpstreamUnavailableError)) throw error;
      faults.set(due.id, error);
    }
  }
  // Something else could not be resolved, so what is absent is not known to be.
  const isUnclear = errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN");
  const shown = new Set(looks.map(({ due }) => due.id));
  const absent = isUnclear ? [] : asked.map(({ id }) => id).filter((id) => !shown.has(id) && !faults.has(id));
  const shownNow = clockShown(upstreamNow, looks, askedAt);
  return { asked, looks, faults, absent, askedAt, upstreamNow: earlier(shownNow, asOf) };
}

/**
 * Upstream's clock at the answer. If it dated a row later than its answer, though not later than our clock, the answer's
 * `Date` is behind, and ours is nearer: changes would count as too young to be judged for as long. Pure.
 */
function clockShown(upstreamNow: Date, looks: readonly ToldLook[], now: Date): Date {
  const behind = upstreamNow.getTime() + CLOCKS_APART_MS;
  const isBehind = looks.some(({ newest: { issues, pullRequests } }) =>
    [...issues.nodes, ...pullRequests.nodes].some((row) => {
      const at = Date.parse(row?.updatedAt ?? "");
      return at > behind && at <= now.getTime();
    }),
  );
  return isBehind ? now : upstreamNow;
}

/** Stores what was found. Answers the repositories that have to be read. */
async function storeToldLooks(
  ctx: Context,
  { asked, looks, absent, askedAt, upstreamNow }: ToldAnswer,
): Promise<number[]> {
  const now = ctx.clock.now();
  const until = toldUntil(upstreamNow);
  const found = await findUnheld(
    ctx.db,
    looks.map(({ due, newest, reviewed }) => {
      // Upstream's clock may have run ahead at the last look.
      const heldUntil = due.heldUntil && due.heldUntil <= upstreamNow ? due.heldUntil : new Date(0);
      return { repositoryId: due.id, newest, reviewed, heldUntil };
    }),
    until,
  );
  const verdicts = looks.flatMap((look) => {
    const held = found.get(look.due.id);
    return held ? [{ ...look, ...judgeTold(look.due, held, now) }] : [];
  });

  const held = verdicts.filter(({ verdict }) => verdict === "held").map(({ due }) => due.id);
  const changed = verdicts.filter(({ verdict }) => verdict === "changed").map(({ due }) => due.id);
  const lost = verdicts.filter(({ isLoss }) => isLoss).map(({ due }) => due.id);
  const marks = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`
      update sweeps w set shown = x.shown, shown_at = ${askedAt}, unheld = x.unheld,
          held_at = case when x.id = any(${held}::bigint[]) then ${askedAt} else w.held_at end,
          held_until = case when x.id = any(${held}::bigint[]) then ${until} else w.held_until end,
          changed_at = case when x.id = any(${changed}::bigint[]) then ${now} else w.changed_at end,
          untold_at = case when x.id = any(${lost}::bigint[]) then ${now} else w.untold_at end, others_untold_at = x.others_at
        from unnest(${verdicts.map(({ due }) => due.id)}::bigint[], ${verdicts.map(({ figures }) => JSON.stringify(figures))}::text[],
          ${verdicts.map(({ left }) => left && JSON.stringify(left))}::text[],
          ${verdicts.map(({ due }) => due.othersUntoldAt)}::timestamptz[]) as x(id, shown, unheld, others_at)
        where w.repository_id = x.id`);
    // Those that upstream did not show count as asked, too. Otherwise they would be asked about in each sweep.
    const unshown = asked.filter(({ id }) => !found.has(id)).map(({ id }) => id);
    await tx.update(sweeps).set({ shownAt: askedAt }).where(among(sweeps.repositoryId, unshown));
    await tx.update(sweeps).set({ shown: null, changedAt: now }).where(among(sweeps.repositoryId, absent));
    await moveWatermarksBack(
      tx,
      verdicts
        .filter(({ verdict }) => verdict === "changed")
        .flatMap(({ due }) => found.get(due.id)?.unheld ?? [])
        .map((row) => row.shown),
    );
    await confirmHeld(tx, held, { askedAt, until });
    return await markStale(tx, verdicts, { until, now });
  });
  await enqueueMarks(ctx, marks);
  await enqueueAudits(
    ctx,
    verdicts.filter(({ wantsAudit }) => wantsAudit).map(({ due }) => due.id),
  );
  return [...changed, ...absent];
}

interface ToldVerdict {
  /** "waits": what differs may be younger than upstream's replicas, or an audit looks for it. */
  verdict: "held" | "changed" | "waits";
  /** Webhooks did not tell of it. */
  isLoss: boolean;
  wantsAudit: boolean;
  left: Unheld | null;
}

/** Pure. */
function judgeTold({ before, shownAt, caughtUpAt }: ToldRepository, held: HeldChanges, now: Date): ToldVerdict {
  const stood = new Set(before?.rows);
  // Of numbers of rows, and of labels without a time, the second look decides.
  const isSettled = ({ row, isTimed }: UnheldRow) => isTimed || stood.has(row);
  const rows = held.unheld.filter(isSettled).map(({ row }) => row);
  const lists = Object.keys(held.surplus) as (keyof HeldChanges["surplus"])[];
  const amiss = lists.filter((name) => held.surplus[name] !== 0 && held.surplus[name] === before?.surplus[name]);
  const left: Unheld = {
    rows: held.unheld.map(({ row }) => row),
    surplus: held.surplus,
    ...EXPLAINED,
  };
  const isAll = held.unheld.length === 0 && lists.every((name) => held.surplus[name] === 0);
  if (rows.length === 0 && amiss.length === 0) {
    if (held.isBeyond) return { verdict: "changed", isLoss: false, wantsAudit: false, left: isAll ? null : left };
    // A deletion may not have been told yet: the next look, soon, decides.
    const isShorter = lists.some((name) => held.surplus[name] > 0);
    return { verdict: isShorter ? "waits" : "held", isLoss: isShorter, wantsAudit: false, left: isAll ? null : left };
  }
  const isSame = rows.every((row) => stood.has(row));
  const wasRead = caughtUpAt !== null && caughtUpAt > shownAt;
  const isUnexplained = isSame && (wasRead || before?.unexplainedSince != null);
  // A catch-up finds no deletion, however often it finds something else.
  const isDeletion = amiss.some((name) => held.surplus[name] > 0);
  const isRead = rows.length > 0 || amiss.some((name) => held.surplus[name] < 0);
  const verdict = isRead && !isUnexplained ? "changed" : "waits";
  if (!isDeletion && verdict === "changed") return { verdict, isLoss: true, wantsAudit: false, left };
  const { wantsAudit, ...unexplained } = stillUnexplained(before ?? undefined, now);
  return { verdict, isLoss: true, wantsAudit, left: { ...left, ...unexplained } };
}

/** Whether the last look has found a list shorter than ours, and the next one has to decide whether rows were deleted. */
export async function isDeletionOpen(queries: Queries, repositoryId: number): Promise<boolean> {
  const [row] = await queries
    .select({ unheld: sweeps.unheld })
    .from(sweeps)
    .where(eq(sweeps.repositoryId, repositoryId));
  if (row?.unheld == null) return false;
  const { surplus, unexplainedSince } = parseStored<Unheld>(row.unheld);
  return unexplainedSince === null && Object.values(surplus).some((rows) => rows > 0);
}

/**
 * Up to this moment the mirror holds every change of issues and pull requests. So a catch-up need not read them again.
 */
async function confirmHeld(
  tx: Transaction,
  ids: readonly number[],
  { askedAt, until }: { askedAt: Date; until: Date },
): Promise<void> {
  const settledMs = toldUntil(askedAt);
  await tx
    .update(repositorySyncs)
    .set({
      confirmedAt: sql`greatest(${repositorySyncs.confirmedAt}, ${settledMs})`,
      issuesSyncedAt: sql`greatest(${repositorySyncs.issuesSyncedAt}, ${until})`,
      pullsSyncedAt: sql`greatest(${repositorySyncs.pullsSyncedAt}, ${until})`,
    })
    .where(and(among(repositorySyncs.repositoryId, ids), eq(repositorySyncs.state, "live")));
}

/** Marks the repositories whose own row is older than what upstream shows of it. */
async function markStale(
  tx: Transaction,
  looks: readonly Pick<ToldLook, "due" | "figures">[],
  { until, now }: { until: Date; now: Date },
): Promise<Mark[]> {
  const shown = looks.map(({ due, figures: { nameWithOwner, isArchived, isPrivate, ...times } }) => {
    const [updatedAt, pushedAt] = [fittingTime(times.updatedAt), fittingTime(times.pushedAt)];
    return { r: due.id, nameWithOwner, isArchived, isPrivate, updatedAt, pushedAt };
  });
  const rows = await tx.query<{ id: number }>(sql`
    select x.r as id from json_to_recordset(${sql.json(shown)}) as x(r bigint, "nameWithOwner" text,
        "updatedAt" timestamptz, "pushedAt" timestamptz, "isArchived" boolean, "isPrivate" boolean)
      join repositories r on r.id = x.r
      where r.full_name <> x."nameWithOwner" or r.private <> x."isPrivate" or r.archived is distinct from x."isArchived"
        or (x."updatedAt" <= ${until} and (r.updated_at < x."updatedAt"
          or (r.updated_at > r.seen_at + ${AHEAD} and r.updated_at <> x."updatedAt")))
        or (x."pushedAt" <= ${until} and r.pushed_at is distinct from x."pushedAt" and coalesce(r.pushed_at < x."pushedAt", true))`);
  const marks: Mark[] = rows.map(({ id }) => ({
    kind: "repository",
    repositoryId: 0,
    key: id,
    askedAt: now,
    notBefore: now,
  }));
  await storeMarks(tx, marks);
  return marks;
}

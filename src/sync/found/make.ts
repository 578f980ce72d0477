import type { Transaction } from "../../../db/database.ts";
import { isPostgresConflict } from "../../../db/outage.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { takeTurns } from "../../../db/turns.ts";
import type { Context } from "../../context.ts";
import { recordEvents, wakeTargets } from "../../events/log.ts";
import { keepMade } from "../../inbox/made.ts";
import { type Json, textOf } from "../../json.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import { EVENT_ORDER, resourceOf, resources } from "../../kinds/registry.ts";
import { aspectOf, BELIEVED_WITHIN, sameAspect, shownAtFirst } from "../../mirror/store/found.ts";
import type { Stored } from "../../mirror/store/merge-rule.ts";
import { repeated } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { deleteInBatches } from "../../work/deletion.ts";
import { aboutOf, ownerOf, saysPrivate } from "../events/events.ts";
import { findMirrored } from "../following/state.ts";
import { eachAlone } from "../problems/isolated.ts";
import { rests } from "../problems/problems.ts";
import { type MadeOf, type MakingOf, parentBeside, payloadText, storedByName, withPayloads } from "./documents.ts";
import { makingsOf } from "./makings.ts";

/** Resources of one transaction. */
const MOST_RESOURCES = 50;
/** Bounds one call; the scheduler asks again within seconds. */
const MOST_REPOSITORIES = 100;

type MakingContext = Pick<Context, "db" | "clock" | "config" | "random" | "log" | "queues" | "redis" | "metrics">;

interface StoredChange {
  kind: Kind;
  key: number;
  aspect: string;
  was: Json;
  foundAt: Date;
  isDue: boolean;
  /** A webhook told it behind newer ones, so that not everybody knows it. */
  isLate: boolean;
}

/**
 * Makes events of the changes that were found and that no webhook has told of within `EVENTS_MADE_AFTER`. They stand in
 * the log as upstream's do, with a webhook that we wrote ourselves. Answers how many were made.
 */
export async function makeEvents(ctx: MakingContext, signal?: AbortSignal): Promise<number> {
  counterOf(ctx);
  const until = new Date(ctx.clock.now().getTime() - ctx.config.eventsMadeAfterMs);
  // A repository that failed goes behind those with changes from before its failure. So failing ones never fill each
  // call.
  const due = await ctx.db.query<{ id: number }>(sql`select f.repository_id as id from found_changes f
      left join problems failed on failed.task = 'events' and failed.key = f.repository_id::text
    where f.found_at <= ${until} and not ${waitsFor(until)}
      and not ${mayBeTold(sql`f.repository_id`, until)} and not ${rests(ctx, "events", sql`f.repository_id::text`)}
    group by f.repository_id order by greatest(min(f.found_at), max(failed.failed_at)) limit ${MOST_REPOSITORIES}`);
  let made = 0;
  await eachAlone(ctx, due, {
    subjectOf: ({ id }) => ({ task: "events", key: String(id), repositoryId: id }),
    signal,
    work: async ({ id }) => {
      made += await makeOf(ctx, id, until, signal);
    },
  });
  return made;
}

/**
 * Whether no event can be made yet of the change `f` of `found_changes`.
 *
 * The visibility is unknown while upstream does not show the repository: then the mirror hides it of its own accord. The
 * read that shows the repository again tells whether there is an event. A comment or a review may be stored before what
 * it stands under, and its event shows both. If that has not come within the hour, it waits no longer.
 */
function waitsFor(until: Date): SQL {
  return sql`(f.kind = 'repository' and f.aspect = 'private' and exists (
      select from repository_syncs s where s.repository_id = f.repository_id and s.state = 'paused')
    or f.found_at > ${until}::timestamptz - ${BELIEVED_WITHIN} and ${sql.or(LACKS_PARENT)})`;
}

/** Whether what the changed resource stands under, and its event shows beside it, is not stored. One for each kind. */
const LACKS_PARENT: readonly SQL[] = resources.flatMap(({ kind, table, keyColumn }) => {
  const parent = parentBeside(kind);
  if (!parent) return [];
  const above = resourceOf(parent.kind);
  return sql`(f.kind = ${kind} and exists (
    select from ${table} c where c.repository_id = f.repository_id and ${sql.identifier(`c.${keyColumn}`)} = f.key
      and not exists (select from ${above.table} p where p.repository_id = c.repository_id
        and ${sql.identifier(`p.${above.keyColumn}`)} = ${sql.identifier(`c.${parent.column}`)})))`;
});

/**
 * Whether a delivery that came before the due changes is not applied yet. It may tell of them. If not, its event has a
 * place before those that are made, which then have to show what it tells.
 */
function mayBeTold(repositoryId: SQL, until: Date): SQL {
  return sql`exists (select from deliveries p
    where p.status = 'pending' and p.repository_id = ${repositoryId} and p.received_at <= ${until})`;
}

function counterOf({ metrics }: Pick<Context, "metrics">) {
  return metrics.counter("tain_events_made_total", "Events made of changes that no webhook told of.", ["event"]);
}

/** Ends between two transactions once `signal` is aborted. The next call goes on. */
async function makeOf(ctx: MakingContext, repositoryId: number, until: Date, signal?: AbortSignal): Promise<number> {
  let made = 0;
  while (!signal?.aborted) {
    const { resources, events, targets } = await makeDespiteConflicts(ctx, repositoryId, until);
    for (const { event } of events) counterOf(ctx).inc({ event });
    await wakeTargets(ctx, targets);
    made += events.length;
    if (resources < MOST_RESOURCES) break;
  }
  if (made > 0) ctx.log.info({ repositoryId, made }, "Events were made of changes that no webhook reported");
  return made;
}

interface MadeEvents {
  resources: number;
  events: MadeOf[];
  targets: number[];
}

/**
 * Merges lock the same rows in another order, since they do not know which rows wait for an event. A transaction that
 * loses to a merge is tried again.
 */
async function makeDespiteConflicts(ctx: MakingContext, repositoryId: number, until: Date): Promise<MadeEvents> {
  return await repeated(() => ctx.db.transaction((tx) => makeSome(ctx, tx, repositoryId, until)), {
    policy: RETRIES.foundChanges,
    random: ctx.random,
    isPassing: isPostgresConflict,
  });
}

async function makeSome(ctx: MakingContext, tx: Transaction, repositoryId: number, until: Date): Promise<MadeEvents> {
  const nothing = { resources: 0, events: [], targets: [] };
  // A repository that nobody is shown has no events.
  if (!(await findMirrored(tx, [repositoryId])).has(repositoryId)) {
    await tx.query(sql`delete from found_changes where repository_id = ${repositoryId} and found_at is not null`);
    return nothing;
  }
  const found = await takeFound(tx, repositoryId, until);
  const subjects = [...Map.groupBy(found, ({ kind, key }) => `${kind} ${key}`).values()];
  if (subjects.length === 0) return nothing;
  const stored = await storedByName(tx, repositoryId, found);
  const makings = subjects.flatMap((some) => makingsFor(some, stored));
  const events = await withPayloads(tx, { repositoryId, api: ctx.config.upstreamUrl }, makings);
  const now = ctx.clock.now();
  await storeReported(tx, repositoryId, found, events, now);
  const ids = await keepMade(
    tx,
    withTimes(events, found).map(({ event, making: { action }, payload, foundAt }) => ({
      ...{ event, action, repositoryId, foundAt },
      payload: Buffer.from(payloadText(payload)),
    })),
    now,
  );
  const told = ids.map((deliveryId, at) => {
    const payload = events[at]?.payload ?? {};
    const isPrivate = saysPrivate(payload);
    return { deliveryId, repositoryId, ownerId: ownerOf(payload), isPrivate, about: aboutOf(payload) };
  });
  const targets = told.length > 0 ? await recordEvents(tx, told) : [];
  return { resources: subjects.length, events, targets };
}

/**
 * Locks all waiting changes of the resources that have one due. One process at a time makes events of a repository:
 * otherwise one could tell what comes next of a resource before another has told of its beginning.
 */
async function takeFound(tx: Transaction, repositoryId: number, until: Date): Promise<StoredChange[]> {
  await takeTurns(tx, "found changes", [repositoryId]);
  return await tx.query<StoredChange>(sql`
    select kind, key, aspect, was, found_at as "foundAt", found_at <= ${until} as "isDue", is_late as "isLate" from found_changes f
      where repository_id = ${repositoryId} and found_at is not null and not ${waitsFor(until)}
          and not ${mayBeTold(sql`${repositoryId}`, until)} and (kind, key) in (
        select kind, key from found_changes f where repository_id = ${repositoryId} and found_at <= ${until}
            and not ${waitsFor(until)}
          group by kind, key order by array_position(${EVENT_ORDER}::text[], kind), min(found_at), key limit ${MOST_RESOURCES})
      order by array_position(${EVENT_ORDER}::text[], kind), key, aspect for update`);
}

/**
 * Gives each event the time when its change was found. So it comes before webhooks that arrived since then and may tell
 * of something newer. No event is earlier than the one before it. Pure.
 */
function withTimes(events: readonly MadeOf[], found: readonly StoredChange[]): (MadeOf & { foundAt: Date })[] {
  let lastMs = 0;
  return events.map((one) => {
    const { kind, key } = one.subject;
    const told = new Set(one.making.tells.map(({ aspect }) => aspect));
    const own = found.filter((each) => each.kind === kind && each.key === key && told.has(each.aspect));
    lastMs = Math.max(lastMs, ...own.map(({ foundAt }) => foundAt.getTime()));
    return { ...one, foundAt: new Date(lastMs) };
  });
}

/**
 * The events for one resource. A value that has changed back needs no event. The event of a new resource reports all
 * its values.
 */
function makingsFor(found: readonly StoredChange[], all: ReadonlyMap<string, Stored>): MakingOf[] {
  const [first] = found;
  const stored = first && all.get(`${first.kind} ${first.key}`);
  if (!first || !stored) return [];
  const { kind, key } = first;
  const isOver = found.some(({ aspect, isDue }) => aspect === "exists" && isDue);
  const isGone = aspectOf(kind, stored, "exists") === false;
  const changed = found.flatMap(({ aspect, was, isDue, isLate }) => {
    // A deleted resource has no event but its deletion.
    if (isGone && aspect !== "exists") return [];
    const now = aspectOf(kind, stored, aspect);
    return !(isDue || isOver) || now === undefined || (sameAspect(was, now) && !isLate) ? [] : [{ aspect, was, now }];
  });
  return makingsOf(kind, changed).map((making) => ({ subject: { kind, key }, stored, making }));
}

/** Stores which values the events reported, and ends the waiting of these changes. */
async function storeReported(
  tx: Transaction,
  repositoryId: number,
  found: readonly StoredChange[],
  events: readonly MadeOf[],
  now: Date,
): Promise<void> {
  const told = new Map<string, { kind: Kind; key: number; aspect: string; values: Json[]; until: string | null }>();
  const whole = new Set<string>();
  for (const { subject, stored, making } of events) {
    const isBorn = making.tells.some(({ aspect, value }) => aspect === "exists" && value === true);
    if (isBorn) whole.add(`${subject.kind} ${subject.key}`);
    const tells = [...making.tells, ...(isBorn ? shownAtFirst(subject.kind, stored) : [])];
    for (const { aspect, value } of tells) {
      const name = `${subject.kind} ${subject.key} ${aspect}`;
      const known = told.get(name);
      const until = textOf(stored.fields.updated_at);
      told.set(name, { ...subject, aspect, until, values: [...(known?.values ?? []), value] });
    }
  }
  const over = found.filter(
    ({ kind, key, aspect, isDue }) => !told.has(`${kind} ${key} ${aspect}`) && (isDue || whole.has(`${kind} ${key}`)),
  );
  await forget(tx, repositoryId, over);
  await endWaiting(
    tx,
    repositoryId,
    found.filter(({ kind, key, aspect }) => told.has(`${kind} ${key} ${aspect}`)),
  );
  await noteMade(tx, repositoryId, [...told.values()], now);
}

/** Ends the waiting of these changes. Values that an earlier event reported are kept. */
async function forget(tx: Transaction, repositoryId: number, over: readonly StoredChange[]): Promise<void> {
  if (over.length === 0) return;
  await tx.query(sql`delete from found_changes where ${named(repositoryId, over)} and made_at is null`);
  await endWaiting(tx, repositoryId, over);
}

async function endWaiting(tx: Transaction, repositoryId: number, over: readonly StoredChange[]): Promise<void> {
  if (over.length === 0) return;
  await tx.query(
    sql`update found_changes set was = null, found_at = null, is_late = false where ${named(repositoryId, over)}`,
  );
}

function named(repositoryId: number, some: readonly StoredChange[]): SQL {
  const [kinds, keys, aspects] = [
    some.map((one) => one.kind),
    some.map((one) => one.key),
    some.map((one) => one.aspect),
  ];
  return sql`repository_id = ${repositoryId} and (kind, key, aspect) in (select * from
    unnest(${kinds}::text[], ${keys}::bigint[], ${aspects}::text[]))`;
}

/**
 * Stores what the events reported. A change that still waits was stored while they were made of what was there before:
 * it waits on, and differs from what they reported.
 */
async function noteMade(
  tx: Transaction,
  repositoryId: number,
  told: readonly { kind: Kind; key: number; aspect: string; values: Json[]; until: string | null }[],
  now: Date,
): Promise<void> {
  if (told.length === 0) return;
  await tx.query(sql`
    insert into found_changes as f (repository_id, kind, key, aspect, made, made_until, made_at)
      select ${repositoryId}, kind, key, aspect, made::json, until, ${now} from unnest(
          ${told.map((one) => one.kind)}::text[], ${told.map((one) => one.key)}::bigint[], ${told.map((one) => one.aspect)}::text[],
          ${told.map((one) => JSON.stringify(one.values))}::text[], ${told.map((one) => one.until)}::timestamptz[])
        as x(kind, key, aspect, made, until) order by kind, key, aspect
      on conflict (repository_id, kind, key, aspect) do update
        set was = case when f.found_at is not null then excluded.made -> -1 end, made = excluded.made,
        made_until = excluded.made_until, made_at = excluded.made_at,
        overtaken = false`);
}

/** Forgets made events that are too old for a webhook to follow, and aspects that were only heard of a while ago. */
export async function pruneFound(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  signal?: AbortSignal,
): Promise<void> {
  const before = new Date(clock.now().getTime() - config.deliveryRetentionMs);
  await deleteInBatches(signal, (most) =>
    db.count(sql`delete from found_changes where (repository_id, kind, key, aspect) in (
      select repository_id, kind, key, aspect from found_changes
        where found_at is null and (greatest(heard_at, made_at) < ${before}
          or (made_at is null and heard_at < ${clock.now()}::timestamptz - ${BELIEVED_WITHIN})) limit ${most} for update skip locked)`),
  );
}

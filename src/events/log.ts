import { type Transaction, together } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { takeTurns } from "../../db/turns.ts";
import type { Context } from "../context.ts";
import { enqueueTargets, enqueueTask, orLater } from "../queues/queues.ts";
import { dueTargets } from "./cursors.ts";
import { pauseLapsed } from "./target.ts";

/** A delivery that is settled in the same transaction, with the repository, owner and issue that it concerns. */
export interface Told {
  deliveryId: string;
  /** Null: no repository. */
  repositoryId: number | null;
  /** Whose targets hear of it. For a mirrored repository, the owner that upstream showed counts. */
  ownerId: number | null;
  /** Whether the payload says that the repository is private. If either the payload or the mirror does, it was. */
  isPrivate: boolean;
  /** The issue or pull request that it is about; null: none. */
  about: { number: number; isPullRequest: boolean } | null;
}

/** Stands in `events.repository_id` for events that concern no repository. */
const NO_REPOSITORY = 0;

/** The announcement of transactions that have added to the log. */
export const EVENTS_TOLD = "events";

/**
 * Writes settled deliveries into the ordered log, and answers the targets to wake after the commit. Readers ask
 * Postgres for revisions, so a read that begins after the commit shows the event's change.
 *
 * This locks each repository until the commit, so that no event gets a place that a cursor has already passed. Call it
 * last in a transaction: then writers of one repository wait for each other only briefly.
 */
export async function recordEvents(tx: Transaction, told: readonly Told[]): Promise<number[]> {
  const repositoryIds = told.map(({ repositoryId }) => repositoryId ?? NO_REPOSITORY);
  const ids = told.map(({ deliveryId }) => deliveryId);
  const owners = told.map(({ ownerId }) => ownerId);
  const numbers = told.map(({ about }) => about?.number ?? null);
  const arePrivate = told.map(({ isPrivate }) => isPrivate);
  const arePulls = told.map(({ about }) => about?.isPullRequest ?? null);
  const written = () =>
    tx.prepared(sql`
      insert into events (repository_id, guid, delivery_id, event, action, owner_id, received_at, is_made, number,
          is_pull_request, was_private)
        select x.repository_id, d.guid, d.id, d.event, d.action, coalesce(r.owner_id, x.owner_id), d.received_at,
            d.is_made, x.number, x.is_pull_request, x.is_private or coalesce(r.private, false)
          from unnest(${sql.array(ids, "uuid")}, ${sql.array(repositoryIds, "bigint")}, ${sql.array(owners, "bigint")},
            ${sql.array(numbers, "integer")}, ${sql.array(arePulls, "boolean")}, ${sql.array(arePrivate, "boolean")})
            as x(id, repository_id, owner_id, number, is_pull_request, is_private)
          join deliveries d on d.id = x.id
          -- Other rows of repositories may be made of what webhooks of others show.
          left join (repositories r join repository_syncs s on s.repository_id = r.id) on r.id = x.repository_id
        on conflict (repository_id, guid) do nothing`);
  const [, , woken] = await together([
    takeTurns(tx, "events", repositoryIds),
    written(),
    place(tx, repositoryIds),
    tx.announce([EVENTS_TOLD]),
  ]);
  return woken;
}

/**
 * Places events that waited for an earlier delivery, which has failed for good. Events that still wait are neither
 * locked nor counted, so they delay no others. Ends between two transactions once `signal` is aborted.
 */
async function placeHeld({ db }: Pick<Context, "db">, signal?: AbortSignal): Promise<void> {
  for (let last = -1; !signal?.aborted; ) {
    const rows = await db.query<{ repositoryId: number }>(sql`
      select distinct e.repository_id as "repositoryId" from events e
        where ${IS_READY} and e.repository_id > ${last} order by "repositoryId" limit ${PLACED_AT_ONCE}`);
    const repositoryIds = rows.map(({ repositoryId }) => repositoryId);
    if (repositoryIds.length > 0)
      await db.transaction((tx) =>
        together([takeTurns(tx, "events", repositoryIds), place(tx, repositoryIds), tx.announce([EVENTS_TOLD])]),
      );
    if (repositoryIds.length < PLACED_AT_ONCE) return;
    last = repositoryIds.at(-1) ?? last;
  }
}

/** Repositories of one transaction, which holds the lock of each. */
const PLACED_AT_ONCE = 100;

/** Whether an event `e` waits for its place, and every delivery received before it is settled. */
const IS_READY = sql`e.id is null and not exists (
  select from deliveries p where p.status = 'pending' and p.received_at <= e.received_at
    and coalesce(p.repository_id, ${NO_REPOSITORY}) = e.repository_id
    and (p.received_at, p.id) < (e.received_at, e.delivery_id))`;

/**
 * Gives events their places in the order of receipt, and answers the targets to wake. A target that a turn holds is
 * left out, since the turn looks again. So is a target that waits to try again. Turns pass over a cursor that this
 * transaction has locked, so an event there may wait without a turn.
 *
 * Batches of deliveries are applied side by side, so a later delivery may be settled first. It waits for the earlier
 * ones. This is a statement of its own, since it has to see the rows of the turn's previous holder.
 *
 * `nextval` locks the sequence until the end of the transaction. By this lock `LogEnd` can tell when every place up to a
 * number is settled.
 */
async function place(tx: Transaction, repositoryIds: readonly number[]): Promise<number[]> {
  const rows = await tx.prepared<{ id: number }>(sql`
    with ready as (
      select e.repository_id, e.guid from events e
        where ${IS_READY} and e.repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[])
        order by e.received_at, e.delivery_id
    ), placed as (
      update events e set id = r.place from (select *, nextval('event_place') as place from ready) r
        where e.repository_id = r.repository_id and e.guid = r.guid
        returning e.repository_id, e.id, e.event, e.action, e.owner_id
    ), asked as (
      select t.id as target_id, p.repository_id, min(p.id) - 1 as done_id, max(p.id) as wanted_id from placed p
        join targets t on t.active and t.events && array['*', p.event]
          and (t.actions is null or p.action = any(t.actions)) and (t.scope = 'everything'
          or (t.scope = 'repository' and t.scope_id = p.repository_id)
          or (t.scope = 'organization' and t.scope_id = p.owner_id))
        group by t.id, p.repository_id
    ), wanted as (
      insert into target_cursors (target_id, repository_id, done_id, wanted_id)
        select target_id, repository_id, done_id, wanted_id from asked order by target_id, repository_id
        on conflict (target_id, repository_id) do update set wanted_id = excluded.wanted_id,
          done_id = case when target_cursors.wanted_id > target_cursors.done_id
            then target_cursors.done_id else excluded.done_id end
        returning target_id, repository_id, done_id, held_by is not null or retry_at is not null as is_taken
    ) select distinct a.target_id as id from asked a join wanted w using (target_id, repository_id)
        join targets t on t.id = a.target_id
        -- A cursor that stayed where it was has earlier events before it: the lock lets each repository's places only grow.
        where not (w.is_taken and w.done_id < a.done_id) and t.disabled_at is null`);
  return rows.map(({ id }) => id);
}

/** Wakes targets. Without Redis nothing is lost: waiting events are in Postgres, and `wakeDue` finds them. */
export async function wakeTargets(
  ctx: Pick<Context, "queues" | "redis" | "log">,
  targetIds: readonly number[],
): Promise<void> {
  if (targetIds.length === 0) return;
  await orLater(ctx, { targetIds }, () => enqueueTargets(ctx, targetIds));
}

/**
 * Wakes every target that has something to send now, unless `signal` is aborted. Answers how many. Targets whose maker
 * may register them no more are paused before.
 */
export async function wakeDue(
  ctx: Pick<Context, "db" | "clock" | "log" | "queues" | "redis">,
  signal?: AbortSignal,
): Promise<number> {
  await pauseLapsed(ctx);
  await placeHeld(ctx, signal);
  if (signal?.aborted) return 0;
  const due = await dueTargets(ctx);
  await enqueueTargets(ctx, due);
  return due.length;
}

/**
 * Targets want other events now, so our hooks at upstream may have to send others. The scheduler asks within a minute
 * anyway.
 */
export async function wantsChanged(ctx: Pick<Context, "queues" | "redis" | "log">): Promise<void> {
  await orLater(ctx, { task: "subscribe" }, () => enqueueTask(ctx, "subscribe"));
}

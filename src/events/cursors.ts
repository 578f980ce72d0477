import type { Queries } from "../../db/database.ts";
import { type SQL, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { deleteInBatches } from "../work/deletion.ts";

/** An event that a target is to hear of. */
export interface NextEvent {
  id: number;
  deliveryId: string;
  guid: string;
  event: string;
  action: string | null;
  receivedAt: Date;
  /** Whether the mirror made the event, of a change that no webhook reported. */
  isMade: boolean;
}

/** The events of one repository that wait for a target, held by one turn alone. */
export interface HeldCursor {
  targetId: number;
  repositoryId: number;
  /** Names the turn. A turn must not move a cursor that another turn has taken over. */
  heldBy: string;
  /** Other turns may take the cursor over from then on. */
  heldUntil: Date;
  doneId: number;
  wantedId: number;
  /** How often the next event has failed, and since when. */
  attempts: number;
  firstTriedAt: Date | null;
}

/**
 * An attempt takes ten seconds at most; then the cursor is held anew. After a kill the cursor stays held for the rest
 * of this time.
 */
const CURSOR_HELD_MS = 20_000;

/** Takes the cursor of a target that is furthest behind and may be tried now; null: none may. */
export async function takeCursor(
  { db, clock }: Pick<Context, "db" | "clock">,
  targetId: number,
  heldBy: string,
): Promise<HeldCursor | null> {
  const now = clock.now();
  const heldUntil = holdFrom(now);
  const [row] = await db.prepared<Omit<HeldCursor, "targetId" | "heldBy" | "heldUntil">>(sql`
    update target_cursors set held_until = ${heldUntil}, held_by = ${heldBy}
      where (target_id, repository_id) = (select target_id, repository_id from target_cursors
        where target_id = ${targetId} and wanted_id > done_id and (retry_at is null or retry_at <= ${now})
          and (held_until is null or held_until <= ${now}) order by done_id limit 1 for update skip locked)
      returning repository_id as "repositoryId", done_id as "doneId", wanted_id as "wantedId",
        attempts, first_tried_at as "firstTriedAt"`);
  return row ? { ...row, targetId, heldBy, heldUntil } : null;
}

export function holdFrom(now: Date): Date {
  return new Date(now.getTime() + CURSOR_HELD_MS);
}

/**
 * Whether an attempt that begins now will end while the cursor, or the ask, is still held. After that, another turn may
 * send newer events, and the attempt would arrive behind them. Pure.
 */
export function isHeldForAnAttempt({ heldUntil }: Pick<HeldCursor, "heldUntil">, now: Date): boolean {
  return heldUntil.getTime() - now.getTime() > CURSOR_HELD_MS / 2;
}

const EVENTS_READ = 50;

/** The next events, in order. The caller decides whether the target wants each one. */
export async function nextEvents(
  { db }: Pick<Context, "db">,
  { repositoryId, doneId, wantedId }: HeldCursor,
): Promise<NextEvent[]> {
  return await db.prepared<NextEvent>(sql`
    select id, delivery_id as "deliveryId", guid, event, action,
        received_at as "receivedAt", is_made as "isMade" from events
      where repository_id = ${repositoryId} and id > ${doneId} and id <= ${wantedId} order by id limit ${EVENTS_READ}`);
}

const OUR_CURSOR = ({ targetId, repositoryId, heldBy }: HeldCursor) =>
  sql`target_id = ${targetId} and repository_id = ${repositoryId} and held_by = ${heldBy}`;

/** The cursor's next step after an event was tried. */
export type Step =
  /** The event is over: accepted, not wanted, or given up. */
  | { to: "next"; doneId: number }
  /** The event is tried again, not before `retryAt`. */
  | { to: "again"; retryAt: Date }
  /** The target is disabled, or its key is missing here. The event waits, and its attempts are counted anew. */
  | { to: "rest" };

/** If no event is left, the step also gives the cursor back. */
function heldIf(isLeft: SQL, now: Date): SQL {
  return sql`held_until = case when ${isLeft} then ${holdFrom(now)}::timestamptz end,
    held_by = case when ${isLeft} then held_by end`;
}

/** Whether a step has dealt with the last event of a repository, and so given the cursor back. Pure. */
export function isAllTold({ doneId, wantedId }: HeldCursor): boolean {
  return doneId >= wantedId;
}

/** The statement that takes a step. It answers the cursor's new place, or nothing if another turn holds the cursor. */
export function stepOf(cursor: HeldCursor, step: Step, now: Date) {
  const ours = OUR_CURSOR(cursor);
  const returning = sql`returning done_id as "doneId", wanted_id as "wantedId"`;
  switch (step.to) {
    case "next":
      return sql`update target_cursors set done_id = greatest(done_id, ${step.doneId}), attempts = 0,
        first_tried_at = null, retry_at = null, ${heldIf(sql`wanted_id > greatest(done_id, ${step.doneId})`, now)}
        where ${ours} ${returning}`;
    case "again":
      return sql`update target_cursors set attempts = attempts + 1, first_tried_at = coalesce(first_tried_at, ${now}),
        retry_at = ${step.retryAt}, held_until = null, held_by = null where ${ours} ${returning}`;
    case "rest":
      return sql`update target_cursors set attempts = 0, first_tried_at = null, retry_at = null, held_until = null,
        held_by = null where ${ours} ${returning}`;
    default:
      throw new Error(`There is no step ${step satisfies never}`);
  }
}

/** Gives a cursor back. Answers whether events wait: some may have been written while it was held. */
export async function releaseCursor({ db }: Pick<Context, "db">, cursor: HeldCursor): Promise<boolean> {
  const [row] = await db.prepared<{ waits: boolean }>(sql`
    update target_cursors set held_until = null, held_by = null where ${OUR_CURSOR(cursor)} returning wanted_id > done_id as waits`);
  return row?.waits ?? false;
}

/**
 * Postpones all cursors of a target that is away, so that it is tried with one repository, not with each. Cursors that
 * another turn has locked are left out.
 */
export async function postpone(
  { db, clock }: Pick<Context, "db" | "clock">,
  targetId: number,
  retryAt: Date,
): Promise<void> {
  await db.query(sql`update target_cursors set retry_at = ${retryAt} where (target_id, repository_id) in (
    select target_id, repository_id from target_cursors where target_id = ${targetId}
      and wanted_id > done_id and (retry_at is null or retry_at <= ${clock.now()}) and held_by is null
      for update skip locked)`);
}

/**
 * Forgets how far a target has come. It locks cursors in the same order as the writer of the log, so there is no
 * deadlock.
 */
export async function forgetCursors(tx: Queries, targetId: number): Promise<void> {
  await tx.query(sql`with locked as materialized (select repository_id from target_cursors where target_id = ${targetId}
      order by repository_id for update)
    delete from target_cursors where target_id = ${targetId} and repository_id in (select repository_id from locked)`);
}

/** Drops cursors of removed targets. One is left where an event was written while its target was removed. */
export async function pruneCursors({ db }: Pick<Context, "db">, signal?: AbortSignal): Promise<void> {
  await deleteInBatches(signal, (most) =>
    db.count(sql`
      delete from target_cursors where (target_id, repository_id) in (
        select target_id, repository_id from target_cursors c
          where not exists (select from targets t where t.id = c.target_id)
          limit ${most} for update skip locked)`),
  );
}

/** The targets that have something to send now and are held by no turn. */
export async function dueTargets({ db, clock }: Pick<Context, "db" | "clock">): Promise<number[]> {
  const now = clock.now();
  const rows = await db.query<{ id: number }>(sql`
    select t.id from targets t where
      (t.active and t.disabled_at is null and exists (select from target_cursors c where c.target_id = t.id
        and c.wanted_id > c.done_id and (c.retry_at is null or c.retry_at <= ${now})
        and (c.held_until is null or c.held_until <= ${now})))
      or exists (select from target_asks a where a.target_id = t.id and (a.held_until is null or a.held_until <= ${now}))
    order by t.id`);
  return rows.map(({ id }) => id);
}

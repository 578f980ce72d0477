import { and, eq } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { parseStored } from "../../json.ts";
import type { Shard } from "../../queues/jobs.ts";
import { enqueueAudits } from "../../queues/queues.ts";
import { repositorySyncs, sweeps } from "../../schema.ts";
import { saveValidators } from "../../upstream/conditional/validators.ts";
import type { CredentialWait } from "../problems/causes.ts";
import { credentialGroups } from "../problems/groups.ts";
import { eachAlone } from "../problems/isolated.ts";
import { rests } from "../problems/problems.ts";
import { isInShard } from "../turns/shards.ts";
import { asUnread, fetchAndStoreComments, readBefore } from "./comment-ends.ts";
import { moveWatermarksBack } from "./followed-lists.ts";
import { type Ends, hasMoved, isExplained, type OurCounts, type Probed, probeLists } from "./list-ends.ts";
import { findUnheldRows, type ShownRow } from "./newest-changes.ts";
import { countAndStoreOurs, keptCounts } from "./our-counts.ts";
import { isLastLook, isSuspected, isSweepDue, isTold, noteUntold, type RepositoryFigures } from "./sweep-due.ts";
import { EXPLAINED, stillUnexplained, type Unexplained } from "./unexplained.ts";

/** A repository whose lists are to be asked for. */
export interface DueLists {
  repositoryId: number;
  /** null: to be counted, since something has changed. */
  ours: OurCounts | null;
  /** null: they were never asked for. */
  ends: Ends | null;
  sweptAt: Date | null;
  /** When its last catch-up began. */
  caughtUpAt: Date | null;
  late: LateRows | null;
  shown: RepositoryFigures;
  /** Webhooks tell of it, and some get lost. GraphQL shows the newest changes, and what it does not is read: comments. */
  isTold: boolean;
}

/** Rows that a look met, and that the mirror does not hold yet. */
interface LateRows extends Unexplained {
  rows: ShownRow[];
}

/** The longest neglected first. */
export async function findListsDue(ctx: Context, shard: Shard): Promise<DueLists[]> {
  type Row = Omit<DueLists, "ours" | "ends" | "late" | "shown"> &
    Record<"ours" | "lists" | "late", string | null> & { shown: string };
  const rows = await ctx.db.query<Row>(sql`
    select w.repository_id as "repositoryId", w.lists, w.swept_at as "sweptAt", s.caught_up_at as "caughtUpAt", w.late, w.shown,
        ${keptCounts} as ours, ${isTold(ctx)} as "isTold"
      from sweeps w join repository_syncs s using (repository_id)
      where ${isInShard(sql`w.repository_id`, shard)} and ${isInShard(sql`s.repository_id`, shard)} and s.state = 'live' and w.shown is not null
        and case when not ${isTold(ctx)} then ${isSweepDue(ctx, sql`greatest(w.swept_at, w.held_at)`, ctx.config.sweepIntervalMs)}
          else ${isSuspected(ctx)} and (w.swept_at is null or w.swept_at <= ${readBefore(ctx)}) end
        and not ${rests(ctx, "sweep", sql`w.repository_id::text`)}
      order by w.swept_at nulls first, w.repository_id`);
  return rows.map(({ ours, lists, late, shown, ...row }) => ({
    ...row,
    late: late === null ? null : parseStored<LateRows>(late),
    ours: ours === null ? null : parseStored<OurCounts>(ours),
    ends: lists === null ? null : parseStored<Ends>(lists),
    shown: parseStored<RepositoryFigures>(shown),
  }));
}

/** How many repositories' lists are asked for at once. */
const PROBES_AT_ONCE = 8;

/**
 * Asks for the lists of each, and adds the repositories in which a list moved to `changed`. Each question is stored
 * together with its answer, even if other repositories could not be asked.
 */
export async function sweepLists(
  ctx: Context,
  due: readonly DueLists[],
  { changed, signal }: { changed: Set<number>; signal?: AbortSignal | undefined },
): Promise<{ swept: Set<number>; waiting: CredentialWait | null }> {
  const swept = new Set<number>();
  let askedAt = ctx.clock.now();
  const groupOf = await credentialGroups(
    ctx,
    due.map(({ repositoryId }) => repositoryId),
  );
  const waiting = await eachAlone(ctx, due, {
    subjectOf: ({ repositoryId }) => ({ task: "sweep", key: String(repositoryId), repositoryId }),
    groupOf: ({ repositoryId }) => groupOf(repositoryId),
    atOnce: PROBES_AT_ONCE,
    signal,
    work: (one) => lookAt(ctx, one),
    store: async (done, failed) => {
      const looks = done.map(({ item, value }) => ({ due: item, ...value }));
      await storeLooks(ctx, looks, { askedAt, failed });
      for (const { due, hasMoved } of looks) if (hasMoved) changed.add(due.repositoryId);
      for (const { due } of looks) swept.add(due.repositoryId);
      askedAt = ctx.clock.now();
    },
  });
  return { swept, waiting };
}

/** What a sweep found in the lists of one repository. */
interface ListsLook {
  due: DueLists;
  probed: Probed | null;
  ends: Ends | null;
  /** The repository is to be read. */
  hasMoved: boolean;
  late: LateRows | null;
  wantsAudit: boolean;
}

/** @param askedAt before the first of them was asked for */
async function storeLooks(
  ctx: Context,
  looks: readonly ListsLook[],
  { askedAt, failed }: { askedAt: Date; failed: readonly DueLists[] },
): Promise<void> {
  // A catch-up that began before this moment may already have passed the list that changed.
  const seenAt = ctx.clock.now();
  const moved = looks.filter((look) => look.hasMoved);
  await ctx.db.transaction(async (tx) => {
    await saveValidators(
      tx,
      looks.flatMap(({ probed }) => probed?.validators ?? []),
    );
    const ids = looks.map(({ due }) => due.repositoryId);
    const lists = looks.map(({ ends }) => JSON.stringify(ends));
    const haveMoved = looks.map((look) => look.hasMoved);
    const late = looks.map((look) => look.late && JSON.stringify(look.late));
    await moveWatermarksBack(
      tx,
      moved.flatMap((look) => look.late?.rows ?? []),
    );
    await tx.query(sql`
      update sweeps w set lists = x.lists, late = x.late, swept_at = ${askedAt},
          changed_at = case when x.moved then ${seenAt}::timestamptz else w.changed_at end
        from unnest(${ids}::bigint[], ${lists}::text[], ${late}::text[], ${haveMoved}::boolean[]) as x(id, lists, late, moved)
        where w.repository_id = x.id`);
    // Failed repositories count as asked too. Otherwise they would come first in every sweep.
    const lost = failed.map(({ repositoryId }) => repositoryId);
    if (lost.length > 0) await tx.update(sweeps).set({ sweptAt: askedAt }).where(among(sweeps.repositoryId, lost));
    await confirm(
      tx,
      looks
        .filter(({ probed, hasMoved, late }) => probed?.changed && isExplained(probed.ends) && !hasMoved && !late)
        .map(({ due }) => due),
      askedAt,
    );
    // In the first sweep everything is new, so it is no sign of lost webhooks.
    const sinces = moved.flatMap(({ due }) => (due.sweptAt ? [{ id: due.repositoryId, since: due.sweptAt }] : []));
    await noteUntold(tx, sinces, seenAt);
  });
  const amiss = looks.filter(({ wantsAudit }) => wantsAudit);
  await enqueueAudits(
    ctx,
    amiss.map(({ due }) => due.repositoryId),
  );
}

/** The ends of all lists are as the mirror holds them. */
async function confirm(tx: Transaction, held: readonly DueLists[], askedAt: Date): Promise<void> {
  const ids = held.filter(({ isTold }) => !isTold).map(({ repositoryId }) => repositoryId);
  await tx
    .update(repositorySyncs)
    .set({ confirmedAt: sql`greatest(${repositorySyncs.confirmedAt}, ${askedAt})` })
    .where(and(among(repositorySyncs.repositoryId, ids), eq(repositorySyncs.state, "live")));
}

async function lookAt(ctx: Context, due: DueLists): Promise<Omit<ListsLook, "due">> {
  const { repositoryId, shown } = due;
  // An archived repository is read-only. The sweep of repositories shows when it is no longer archived.
  const isFrozen = isLastLook(shown, due.sweptAt) && due.ends !== null && isExplained(due.ends);
  const ours = due.ours ?? (isFrozen ? null : await countAndStoreOurs(ctx, repositoryId));
  const read = ours && due.isTold ? await fetchAndStoreComments(ctx, { repositoryId, ours, before: due.ends }) : null;
  const probed =
    ours && !isFrozen && !due.isTold
      ? await probeLists(ctx, {
          repositoryId,
          ours,
          before: due.ends,
          milestones: !shown.milestones,
          now: ctx.clock.now(),
        })
      : null;
  const isMoved = probed !== null && hasMoved(due.ends, probed.ends);
  // Webhooks may have told of all that differs from the last look.
  const changed = isMoved && due.ends !== null ? probed.changed : null;
  const unheld = (await findUnheldRows(ctx.db, [...(changed ?? []), ...(due.late?.rows ?? [])])).map(
    (row) => row.shown,
  );
  const { late, wantsRead, wantsAudit } = judgeLate(due, unheld, ctx.clock.now());
  const isKnown = changed !== null && unheld.length === 0;
  return {
    probed,
    ends: (wantsRead ? read && asUnread(read.ends) : read?.ends) ?? probed?.ends ?? due.ends,
    hasMoved: (isMoved && !isKnown) || wantsRead || (read?.isPart ?? false),
    late,
    wantsAudit: wantsAudit || (read?.needsAudit ?? probed?.needsAudit ?? false),
  };
}

/**
 * What is to be done about rows that the mirror does not hold: the catch-up after the look that met them reads them. If
 * it does not, the next one may. After that an audit is asked for, again and again until the mirror holds them. Pure.
 */
function judgeLate(
  { late: before, sweptAt, caughtUpAt }: DueLists,
  unheld: readonly ShownRow[],
  now: Date,
): { late: LateRows | null; wantsRead: boolean; wantsAudit: boolean } {
  if (unheld.length === 0) return { late: null, wantsRead: false, wantsAudit: false };
  // A row may be met by two looks.
  const rows = [...new Map(unheld.map((row) => [JSON.stringify(row), row])).values()];
  const wasRead = before !== null && sweptAt !== null && caughtUpAt !== null && caughtUpAt > sweptAt;
  if (!wasRead && !before?.unexplainedSince)
    return { late: { rows, ...EXPLAINED }, wantsRead: false, wantsAudit: false };
  if (!before?.unexplainedSince)
    return {
      late: { rows, unexplainedSince: now.toISOString(), auditAskedAt: null },
      wantsRead: true,
      wantsAudit: false,
    };
  const { wantsAudit, ...unexplained } = stillUnexplained(before, now);
  return { late: { rows, ...unexplained }, wantsRead: false, wantsAudit };
}

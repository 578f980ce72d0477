import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { parseStored } from "../../json.ts";
import type { Shard } from "../../queues/jobs.ts";
import { enqueueAudits } from "../../queues/queues.ts";
import { saveValidators } from "../../upstream/conditional/validators.ts";
import type { CredentialWait } from "../problems/causes.ts";
import { credentialGroups } from "../problems/groups.ts";
import { eachAlone } from "../problems/isolated.ts";
import { rests } from "../problems/problems.ts";
import { isInShard } from "../shards.ts";
import { type Ends, hasMoved, type List, type OurCounts, type Probed, probeLists } from "./list-ends.ts";
import { countAndStoreOurs, keptCounts } from "./our-counts.ts";
import { isAuditUnderWay, isSweepDue, noteUntold, type RepositoryFigures } from "./sweep-due.ts";

/** A repository whose lists are to be asked for. */
export interface DueLists {
  repositoryId: number;
  /** null: to be counted, since something has changed. */
  ours: OurCounts | null;
  /** null: they were never asked for. */
  ends: Ends | null;
  sweptAt: Date | null;
  shown: RepositoryFigures;
  isAuditUnderWay: boolean;
}

/** The longest neglected first. */
export async function findListsDue(ctx: Context, shard: Shard): Promise<DueLists[]> {
  type Row = Omit<DueLists, "ours" | "ends" | "shown"> & { ours: string | null; lists: string | null; shown: string };
  const rows = await ctx.db.query<Row>(sql`
    select w.repository_id::float8 as "repositoryId", w.lists, w.swept_at as "sweptAt", w.shown,
        ${keptCounts} as ours, ${isAuditUnderWay} as "isAuditUnderWay"
      from sweeps w join repository_syncs s using (repository_id)
      left join audits a on a.repository_id = w.repository_id and ${isInShard(sql`a.repository_id`, shard)}
      where ${isInShard(sql`w.repository_id`, shard)} and ${isInShard(sql`s.repository_id`, shard)} and s.state = 'live' and w.shown is not null and ${isSweepDue(ctx, sql`w.swept_at`, ctx.config.sweepIntervalMs)}
        and not ${rests(ctx, "sweep", sql`w.repository_id::text`)}
      order by w.swept_at nulls first, w.repository_id`);
  return rows.map(({ ours, lists, shown, ...row }) => ({
    ...row,
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
): Promise<{ swept: number; waiting: CredentialWait | null }> {
  let swept = 0;
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
      swept += looks.length;
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
  hasMoved: boolean;
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
    // Failed repositories count as asked too. Otherwise they would come first in every sweep.
    const lost = failed.map(({ repositoryId }) => repositoryId);
    if (lost.length > 0)
      await tx.query(sql`update sweeps set swept_at = ${askedAt} where repository_id = any(${lost}::bigint[])`);
    // In the first sweep everything is new, so it is no sign of lost webhooks.
    const sinces = moved.flatMap(({ due }) => (due.sweptAt ? [{ id: due.repositoryId, since: due.sweptAt }] : []));
    await noteUntold(tx, sinces, seenAt);
  });
  const amiss = looks.filter(({ probed }) => probed?.needsAudit);
  await enqueueAudits(
    ctx,
    amiss.map(({ due }) => due.repositoryId),
  );
}

async function lookAt(ctx: Context, due: DueLists): Promise<Omit<ListsLook, "due">> {
  const { repositoryId, shown } = due;
  // An archived repository is read-only. The sweep of repositories shows when it is no longer archived.
  const isFrozen = shown.isArchived && due.ends !== null;
  const except: List[] = shown.milestones ? ["milestones"] : [];
  const ours = due.ours ?? (isFrozen ? null : await countAndStoreOurs(ctx, repositoryId));
  const probed = ours && !isFrozen ? await probeLists(ctx, { repositoryId, ours, before: due.ends, except }) : null;
  return {
    probed,
    ends: probed?.ends ?? due.ends,
    hasMoved: probed !== null && hasMoved(due.ends, probed.ends),
  };
}

function forgetting(ends: Ends): Ends {
  return Object.fromEntries(Object.entries(ends).map(([path, end]) => [path, { ...end, audited: false }]));
}

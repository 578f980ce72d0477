import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { parseStored } from "../../json.ts";
import { enqueueAudit } from "../../queues/enqueue.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { type Ends, hasMoved, type List, type OurCounts, type Probed, probeLists } from "./list-ends.ts";
import { isDue, noteUntold, oursOf, type Shown } from "./sweep-due.ts";

/** A repository whose lists are to be asked for. */
export interface DueLists {
  repositoryId: number;
  ours: OurCounts;
  /** null: they were never asked for. */
  ends: Ends | null;
  sweptAt: Date | null;
  shown: Shown;
  isAuditUnderWay: boolean;
}

/** The longest neglected first. */
export async function findListsDue(ctx: Context): Promise<DueLists[]> {
  const { count, isAuditUnderWay } = oursOf(ctx);
  type Row = OurCounts & Omit<DueLists, "ours" | "ends" | "shown"> & { lists: string | null; shown: string };
  const rows = await ctx.db.query<Row>(sql`
    select w.repository_id::float8 as "repositoryId", w.lists, w.swept_at as "sweptAt", w.shown,
        ${isAuditUnderWay} as "isAuditUnderWay",
        ${count("labels")} as labels, ${count("milestones")} as milestones,
        ${count("issues", sql`and t.id is not null`)} as issues, ${count("issue_comments")} as comments,
        ${count("pull_request_review_comments")} as "reviewComments"
      from sweeps w join repository_syncs s using (repository_id) left join audits a using (repository_id)
      where s.state = 'live' and w.shown is not null and ${isDue(ctx, sql`w.swept_at`, ctx.config.sweepIntervalMs)}
      order by w.swept_at nulls first, w.repository_id`);
  return rows.map(({ repositoryId, sweptAt, isAuditUnderWay, lists, shown, ...ours }) => {
    const ends = lists === null ? null : parseStored<Ends>(lists);
    return { repositoryId, ours, ends, sweptAt, shown: parseStored<Shown>(shown), isAuditUnderWay };
  });
}

/** How the lists of one repository were found. */
interface Look {
  due: DueLists;
  probed: Probed | null;
  ends: Ends | null;
  hasMoved: boolean;
}

/**
 * Answers the repositories in which a list moved. Each question is stored together with its answer, even if other
 * repositories could not be asked.
 */
export async function sweepLists(ctx: Context, some: readonly DueLists[]): Promise<number[]> {
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
  // An archived repository is read-only. The sweep of repositories shows when it is no longer archived.
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

import type { Transaction } from "../../../db/database.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { MADE_HOOK } from "../../inbox/inbox.ts";
import type { End } from "./list-ends.ts";

/** The values by which a sweep sees that a repository has changed. */
export interface RepositoryFigures {
  nameWithOwner: string;
  updatedAt: string;
  pushedAt: string | null;
  isArchived: boolean;
  isPrivate: boolean;
  /** Only of large fleets. */
  milestones?: End;
}

/** How long a repository whose webhooks were lost is asked more often. */
const SUSPECTED_MS = 3_600_000;
/** A webhook up to this long before the last sweep may be about a change that the sweep was too early to see. */
const TOLD_WITHIN_MS = 60_000;

/** Whether a row `w` of `sweeps`, last asked for at `askedAt`, is due. Under suspicion it is due sooner. */
export function isSweepDue(
  { clock, config }: Pick<Context, "clock" | "config">,
  askedAt: Sql,
  intervalMs: number,
): Sql {
  const now = clock.now().getTime();
  // Half a tick of tolerance: a schedule is never on the moment.
  const slack = config.sweepIntervalMs / 8;
  const usual = new Date(now - intervalMs + slack);
  const suspected = new Date(now - config.sweepIntervalMs / 4 + slack);
  return sql`(${askedAt} is null or ${askedAt} <= ${usual}
    or (w.untold_at > ${new Date(now - SUSPECTED_MS)} and ${askedAt} <= ${suspected}))`;
}

/** Whether the audit `a` is under way. */
export const isAuditUnderWay = sql`coalesce(a.started_at is not null and a.finished_at is null, false)`;

/** Puts repositories under suspicion: webhooks of theirs were lost. */
export async function suspect(tx: Transaction, ids: readonly number[], now: Date): Promise<void> {
  await tx.query(sql`update sweeps set untold_at = ${now} where repository_id = any(${ids}::bigint[])`);
}

/** Puts those of the repositories under suspicion that have changed since these moments without any webhook. */
export async function noteUntold(tx: Transaction, changes: { id: number; since: Date }[], now: Date): Promise<void> {
  if (changes.length === 0) return;
  const ids = changes.map(({ id }) => id);
  const sinces = changes.map(({ since }) => new Date(since.getTime() - TOLD_WITHIN_MS));
  await tx.query(sql`
    update sweeps w set untold_at = ${now} from unnest(${ids}::bigint[], ${sinces}::timestamptz[]) as x(id, since)
      where w.repository_id = x.id
        and not exists (select from deliveries d where d.repository_id = x.id and d.received_at > x.since
          and d.hook_id <> ${MADE_HOOK})`);
}

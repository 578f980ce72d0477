import type { Transaction } from "../../../db/database.ts";
import { among, type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { MADE_HOOK } from "../../inbox/inbox.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { sweeps } from "../../schema.ts";
import type { End } from "./list-ends.ts";

/** The values by which a sweep sees that a repository has changed. */
export interface RepositoryFigures {
  nameWithOwner: string;
  updatedAt: string;
  pushedAt: string | null;
  isArchived: boolean;
  isPrivate: boolean;
  /** Since when sweeps have found it archived, by our clock, in ISO 8601. Absent: it is not, or an earlier version asked. */
  archivedSince?: string;
  /** Only of large fleets. */
  milestones?: End;
}

/** What upstream shows now, after it showed `before`. Pure. */
export function figuresAfter(
  before: RepositoryFigures | null,
  shown: RepositoryFigures,
  askedAt: Date,
): RepositoryFigures {
  if (!shown.isArchived) return shown;
  return { ...shown, archivedSince: before?.archivedSince ?? askedAt.toISOString() };
}

/**
 * Whether a look at the lists that began at `lookedAt` shows an archived repository as it will stay, on any replica.
 * Pure.
 */
export function isLastLook({ isArchived, archivedSince }: RepositoryFigures, lookedAt: Date | null): boolean {
  if (!isArchived || archivedSince === undefined || lookedAt === null) return false;
  return lookedAt.getTime() > Date.parse(archivedSince) + REPLICA_LAG_MS;
}

/** How long a repository whose webhooks were lost is asked more often. */
const SUSPECTED_MS = 3_600_000;
/** A webhook up to this long before the last sweep may be about a change that the sweep was too early to see. */
const TOLD_WITHIN_MS = 60_000;

/** Whether a row `w` of `sweeps`, last asked for at `askedAt`, is due. Under suspicion it is due sooner. */
export function isSweepDue(
  { clock, config }: Pick<Context, "clock" | "config">,
  askedAt: SQL,
  intervalMs: number,
): SQL {
  const now = clock.now().getTime();
  // Half a tick of tolerance: a schedule is never on the moment.
  const slack = config.sweepIntervalMs / 8;
  const usual = new Date(now - intervalMs + slack);
  const suspected = new Date(now - config.sweepIntervalMs / 4 + slack);
  return sql`(${askedAt} is null or ${askedAt} <= ${usual}
    or (${isSuspected({ clock })} and ${askedAt} <= ${suspected}))`;
}

/** Whether webhooks of the row `w` of `sweeps` were lost lately, or of many others. */
export function isSuspected({ clock }: Pick<Context, "clock">): SQL {
  const since = new Date(clock.now().getTime() - SUSPECTED_MS);
  return sql`coalesce(greatest(w.untold_at, w.others_untold_at) > ${since}, false)`;
}

/** From so many lossy repositories on, what all webhooks have in common is to blame. `share`: of those with webhooks. */
const LOST_BY_MANY = { least: 3, share: 1 / 3 };

/**
 * For a query whose rows `w` of `sweeps` are those of which webhooks tell: when many of them were found to lose some.
 * Then others of a row may be lost that no look shows, since a lost edit of a comment moves nothing else.
 */
export function othersUntoldAt({ clock }: Pick<Context, "clock">): SQL {
  const now = clock.now();
  const { least, share } = LOST_BY_MANY;
  return sql`case when count(*) filter (where w.untold_at > ${new Date(now.getTime() - SUSPECTED_MS)}) over ()
    >= greatest(${least}::float8, count(*) over () * ${share}::float8) then ${now}::timestamptz else w.others_untold_at end`;
}

/** Puts repositories under suspicion: webhooks of theirs were lost. */
export async function suspect(tx: Transaction, ids: readonly number[], now: Date): Promise<void> {
  await tx.update(sweeps).set({ untoldAt: now }).where(among(sweeps.repositoryId, ids));
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

/** So long after its last webhook a repository's lists are worth a request each: from then on they are free. */
const LIVELY_MS = 7_200_000;

/**
 * Whether webhooks have told of the repository `s` of `repository_syncs`, its row `w` of `sweeps`, since its lists were
 * last asked for. Then they have changed, and asking for them is not free. GraphQL shows whether the mirror holds the
 * changes.
 */
export function isTold({ clock }: Pick<Context, "clock">): SQL {
  return sql`coalesce(w.shown_at is not null and (select d.received_at from deliveries d where d.repository_id = s.repository_id
    and d.hook_id <> ${MADE_HOOK} order by d.received_at desc limit 1)
    > greatest(w.swept_at - ${`${TOLD_WITHIN_MS} milliseconds`}::interval, ${new Date(clock.now().getTime() - LIVELY_MS)}), false)`;
}

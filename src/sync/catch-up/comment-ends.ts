import { eq } from "drizzle-orm";
import type { Context } from "../../context.ts";
import { parseStored } from "../../json.ts";
import { sweeps } from "../../schema.ts";
import { RemovedError } from "../problems/errors.ts";
import { RepositoryUnavailableError } from "../reads/pages.ts";
import { COMMENTS, type FollowedList, fetchAndStoreListEnd, REVIEW_COMMENTS } from "./followed-lists.ts";
import { digestOf, type End, type Ends, judge, lastPageOf, type OurCounts } from "./list-ends.ts";
import { EXPLAINED } from "./unexplained.ts";

/**
 * Where webhooks get lost, comments are read so often, as a part of the interval between catch-ups: GraphQL shows no
 * change of theirs, and nothing else tells that one was edited or deleted.
 */
const EVERY = 0.75;

/** Comments that were read before this moment are to be read again. */
export function readBefore({ clock, config }: Pick<Context, "clock" | "config">): Date {
  return new Date(clock.now().getTime() - EVERY * config.catchUpIntervalMs);
}

export interface StoredEnds {
  ends: Ends;
  /** A list is shorter than ours, or stays longer: something that only an audit finds. */
  needsAudit: boolean;
  /** Not all was read: a catch-up has to. */
  isPart: boolean;
}

/**
 * Reads and stores the ends of both lists of comments of a repository, a request each. A new comment moves its issue,
 * which GraphQL shows, so an empty list need not be read.
 */
export async function fetchAndStoreComments(
  ctx: Context,
  { repositoryId, ours, before }: { repositoryId: number; ours: OurCounts; before: Ends | null },
): Promise<StoredEnds> {
  const repository = await ctx.jobReads.repository(repositoryId);
  if (!repository) throw new RemovedError(`The repository ${repositoryId} is mirrored no more`);
  const read: StoredEnds = { ends: {}, needsAudit: false, isPart: false };
  const readOne = async (list: FollowedList, count: number): Promise<void> => {
    if (count === 0) return;
    const { size, number, before: rowsBefore } = lastPageOf(count);
    const known = before?.[list.kind];
    const startedAt = ctx.clock.now().toISOString();
    const end: End = { digest: null, theirs: null, ours: count, ...EXPLAINED };
    try {
      const readAt = known?.readAt === undefined ? null : new Date(known.readAt);
      const page = await fetchAndStoreListEnd(ctx, repository, list, { size, number, readAt });
      end.digest = page.isUnchanged ? (known?.digest ?? "unchanged") : digestOf(page.rows);
      end.theirs = page.isUnchanged ? (known?.theirs ?? null) : rowsBefore + page.length + (page.next ? 1 : 0);
      if (page.reachesBack && page.next === null) end.readAt = startedAt;
    } catch (error) {
      if (!(error instanceof RepositoryUnavailableError)) throw error;
    }
    if (end.readAt === undefined && (known?.digest !== null || end.digest !== null)) read.isPart = true;
    if (judge(end, known, ctx.clock.now())) read.needsAudit = true;
    read.ends[list.kind] = end;
  };
  await readOne(COMMENTS, ours.comments);
  await readOne(REVIEW_COMMENTS, ours.reviewComments);
  return read;
}

/** The same ends, which a catch-up is to read again. Pure. */
export function asUnread(ends: Ends): Ends {
  return Object.fromEntries(Object.entries(ends).map(([kind, { readAt: _, ...end }]) => [kind, end]));
}

/** When each list of comments of a repository was read, by our clock, if that was lately: a catch-up need not. */
export async function whenCommentsWereRead(
  ctx: Pick<Context, "db" | "clock" | "config">,
  repositoryId: number,
): Promise<ReadonlyMap<string, Date>> {
  const [row] = await ctx.db.select({ lists: sweeps.lists }).from(sweeps).where(eq(sweeps.repositoryId, repositoryId));
  const ends = Object.entries(row?.lists == null ? {} : parseStored<Ends>(row.lists));
  const read = ends.flatMap(([kind, { readAt }]) => (readAt === undefined ? [] : [[kind, new Date(readAt)] as const]));
  return new Map(read.filter(([, readAt]) => readAt > readBefore(ctx)));
}

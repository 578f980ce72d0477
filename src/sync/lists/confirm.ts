import { eq } from "drizzle-orm";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { LISTS, type ListName, longestOf, type RestListName, tableOf } from "../../mirror/store/lists.ts";
import { repositorySyncs } from "../../schema.ts";
import { forgetValidatorsLike } from "../../upstream/conditional/validators.ts";
import { GraphqlTooHeavyError } from "../../upstream/protocol/errors.ts";
import { object, type Read, text, whole } from "../../upstream/protocol/field-readers.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { isDueSince } from "../hook-deliveries/told-nothing.ts";
import { readOpenPulls } from "../reads/open-pulls.ts";
import { doubtThreads, THREAD_STATES } from "./thread-states.ts";

/**
 * How long after a push to a base branch pull requests are asked about. The push may have taken commits out of some
 * pull requests, and upstream does not name these.
 */
const PUSHED_MS = 5 * 60_000;

/** Whether upstream has to be asked again how long the lists of the row `s` of `repository_syncs` are. */
export function areListsDue(ctx: Pick<Context, "clock" | "config">): SQL {
  const pushed = new Date(ctx.clock.now().getTime() - PUSHED_MS);
  return sql`(${isDueSince(ctx, sql`s.lists_confirmed_at`, ["commits", "threads"])}
    or (s.base_pushed_at >= s.lists_confirmed_at and s.lists_confirmed_at <= ${pushed}))`;
}

const readLengths = object({
  number: whole,
  headRefOid: text,
  commits: object({ totalCount: whole }),
  changedFiles: whole,
});

/** How GraphQL says how long a list is. */
const LENGTHS: Readonly<Record<RestListName, (pull: Read<typeof readLengths>) => number>> = {
  commits: ({ commits }) => commits.totalCount,
  files: ({ changedFiles }) => changedFiles,
};

/**
 * Asks upstream for the number of commits and files of open pull requests, and for the state of their threads. A list
 * with another length here has to be read, which costs nothing if it is unchanged. So have threads in another state.
 * @throws PullsNotShownError when upstream's GraphQL does not show the repository
 */
export async function confirmLists(ctx: Context, repository: MirroredRepository): Promise<void> {
  const startedAt = ctx.clock.now();
  if (repository.mirrors.includes("commits")) await confirmLengths(ctx, repository, startedAt);
  if (repository.mirrors.includes("threads")) await confirmThreads(ctx, repository, startedAt);
  await whileMirrored(ctx, repository, async (tx) => {
    await tx
      .update(repositorySyncs)
      .set({ listsConfirmedAt: startedAt })
      .where(eq(repositorySyncs.repositoryId, repository.id));
    tx.touch([repository.id]);
  });
  await forgetDeleted(ctx, repository);
}

async function confirmLengths(ctx: Context, repository: MirroredRepository, startedAt: Date): Promise<void> {
  const pulls = await readOpenPulls(ctx, repository, {
    fields: "number headRefOid commits { totalCount } changedFiles",
    readPull: readLengths,
  });
  await whileMirrored(ctx, repository, async (tx) => {
    for (const list of ["commits", "files"] as const) {
      const lengths = pulls.map((pull) => ({
        n: pull.number,
        head: pull.headRefOid,
        length: Math.min(LENGTHS[list](pull), longestOf(list)),
      }));
      await tx.query(sql`
        update mirrored_lists l set read_at = null
          from json_to_recordset(${sql.json(lengths)}) as x(n integer, head text, length integer)
          where l.repository_id = ${repository.id} and l.list = ${list} and l.number = x.n and l.read_at < ${startedAt}
            and split_part(l.version, ' ', 1) = x.head and x.length <> (select count(*) from ${tableOf(list)} t
              where t.repository_id = l.repository_id and t.number = l.number)`);
    }
  });
}

/**
 * A question that is too heavy even for a single pull request is left to the audit. It must not keep other lists from
 * being read.
 */
async function confirmThreads(ctx: Context, repository: MirroredRepository, startedAt: Date): Promise<void> {
  try {
    const pulls = await readOpenPulls(ctx, repository, THREAD_STATES);
    await whileMirrored(ctx, repository, (tx) => doubtThreads(tx, repository, pulls, { startedAt }));
  } catch (error) {
    if (!(error instanceof GraphqlTooHeavyError)) throw error;
    ctx.log.warn({ repository: repository.fullName, reason: error.message }, "Review threads could not be confirmed");
  }
}

/** Deletes the lists of deleted pull requests. */
async function forgetDeleted(ctx: Context, { id }: MirroredRepository): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const gone = await tx.query<{ list: ListName; number: number }>(sql`
      delete from mirrored_lists l where l.repository_id = ${id} and exists (select from pull_requests p
        where p.repository_id = ${id} and p.number = l.number and p.deleted_at is not null) returning l.list, l.number`);
    for (const list of LISTS) {
      const numbers = gone.filter((one) => one.list === list).map(({ number }) => number);
      if (numbers.length === 0) continue;
      await tx.query(sql`
        delete from ${tableOf(list)} where repository_id = ${id} and number = any(${numbers}::integer[])`);
      const paths = numbers.map((number) => `/repositories/${id}/pulls/${number}/${list}%`);
      await forgetValidatorsLike(tx, paths);
    }
  });
}

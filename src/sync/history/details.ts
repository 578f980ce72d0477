import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { observeListed } from "../../mirror/store/observation.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/errors.ts";
import { eachAlone } from "../problems/isolated.ts";
import type { Subject } from "../problems/problems.ts";
import { sightingOf } from "../reads/pages.ts";

/** Of so many of the newest commits the files are read: as many as the service shows on a page. Each takes a request. */
const MOST_DETAILED = 30;
const READ_TOGETHER = 4;

/** Reads the statistics and files of the newest commits that lack them. Answers whether all have them then. */
export async function fetchAndStoreDetails(ctx: Context, repository: MirroredRepository): Promise<boolean> {
  const { id } = repository;
  const find = () =>
    ctx.db.query<{ sha: string }>(sql`
      select n.sha from (select c.sha, c.position, c.detail from commits c
          join commit_lists l on l.repository_id = c.repository_id and l.head_sha is not null
          where c.repository_id = ${id} order by c.position limit ${MOST_DETAILED}) n
        where n.detail is null order by n.position`);
  const waiting = await eachAlone(ctx, await find(), {
    subjectOf: ({ sha }): Subject => ({ task: "refresh", key: `commit-${id}-${sha}`, repositoryId: id }),
    atOnce: READ_TOGETHER,
    work: ({ sha }) => fetchAndStoreDetail(ctx, repository, sha),
  });
  if (waiting) throw waiting;
  if ((await find()).length > 0) return false;
  await ctx.db.query(sql`update commit_lists set detailed_sha = head_sha where repository_id = ${id}`);
  return true;
}

async function fetchAndStoreDetail(ctx: Context, repository: MirroredRepository, sha: string): Promise<void> {
  const path = `/repositories/${repository.id}/commits/${sha}`;
  const answer = await ctx.upstream.get(path, { priority: "backfill", conditional: false }).catch((error: unknown) => {
    // Upstream does not work out a difference that is too large.
    if (error instanceof UpstreamRefusedError && error.status === 422) return null;
    throw error;
  });
  if (answer !== null && answer.kind !== "ok")
    throw new AbsentError(`Upstream does not show the commit ${sha} of ${repository.fullName}`);
  const observed = answer && observeListed(objectOf(answer.body), sightingOf(ctx, repository, answer.seenAt));
  // GitHub docs, "Get a commit": with more than 300 files there are further pages.
  const isWhole = answer?.links.next === undefined && observed?.fields.files !== undefined;
  const { stats, files } = observed?.fields ?? {};
  const detail = isWhole ? JSON.stringify({ ...(stats !== undefined && { stats }), files }) : "{}";
  await whileMirrored(ctx, repository, async (tx) => {
    if (observed) await mergeObserved(tx, observed.embedded);
    await tx.query(sql`
      update commits set detail = ${detail}::json where repository_id = ${repository.id} and sha = ${sha}`);
    tx.touch([repository.id]);
  });
}

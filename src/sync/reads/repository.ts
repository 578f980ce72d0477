import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { observe } from "../../mirror/store/observation.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { RemovedError } from "../problems/errors.ts";
import { RepositoryUnavailableError, requireCopied } from "./pages.ts";
import { PUSHED_SINCE_CONFIRMED } from "./pushed.ts";

/**
 * Reads a repository itself, by its id, which no rename changes.
 * `upstreamNow` is upstream's clock at the answer, from which watermarks are taken; `asOf` as in `ReadAnswer`.
 * @throws RepositoryUnavailableError when upstream does not show it
 * @throws UpstreamUnavailableError when upstream is a mirror that is still copying it
 * @throws RemovedError when the repository is removed meanwhile
 */
export async function fetchAndStoreRepository(
  ctx: Context,
  known: MirroredRepository,
  priority: Priority,
): Promise<{ repository: MirroredRepository; upstreamNow: Date; asOf: Date | null }> {
  const conditional = !(await wasPushed(ctx, known.id));
  const answer = await ctx.upstream.get(`/repositories/${known.id}`, { priority, conditional });
  switch (answer.kind) {
    case "unchanged":
      requireCopied(answer, known);
      return { repository: known, upstreamNow: answer.upstreamNow, asOf: answer.asOf };
    case "ok": {
      requireCopied(answer, known);
      await whileMirrored(ctx, known, async (tx) => {
        await mergeObserved(
          tx,
          observe("repository", answer.body, {
            api: ctx.config.upstreamUrl,
            seenAt: answer.seenAt,
            read: true,
            isSingle: true,
          }),
        );
        if (answer.validator) await saveValidator(tx, answer.validator);
      });
      const repository = await ctx.jobReads.repository(known.id);
      if (!repository) throw new RemovedError(`${known.fullName} was removed`);
      return { repository, upstreamNow: answer.upstreamNow, asOf: answer.asOf };
    }
    case "missing":
      throw new RepositoryUnavailableError(
        `Upstream answers ${answer.status} for ${known.fullName} (${answer.message}): it was deleted, or no token may see it any more`,
      );
    case "moved":
      throw new RepositoryUnavailableError(
        `Upstream says that ${known.fullName} has moved, though it was asked for by id`,
      );
    default:
      return answer satisfies never;
  }
}

/** Whether upstream refused because the repository is empty: it answers 409 for the refs of such a repository. */
export function isEmptyRepository(error: unknown): boolean {
  return error instanceof UpstreamRefusedError && error.status === 409;
}

async function wasPushed({ db }: Pick<Context, "db">, id: number): Promise<boolean> {
  const [row] = await db.query<{ pushed: boolean }>(sql`
    select ${PUSHED_SINCE_CONFIRMED} as pushed
      from repositories t join repository_syncs s on s.repository_id = t.id where t.id = ${id}`);
  return row?.pushed ?? false;
}

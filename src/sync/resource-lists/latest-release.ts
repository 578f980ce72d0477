import { eq } from "drizzle-orm";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { IS_LATEST_KNOWN } from "../../mirror/read/releases.ts";
import { marksForConflicts, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { keyIn, observe } from "../../mirror/store/observation.ts";
import { releaseLists } from "../../schema.ts";
import { forgetValidators, saveValidator } from "../../upstream/conditional/validators.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { sightingOf } from "../reads/pages.ts";

/** Has upstream say which release is the latest: `make_latest` decides that, and no representation shows it. */
async function fetchAndStoreLatest(ctx: Context, repository: MirroredRepository): Promise<void> {
  const startedAt = ctx.clock.now();
  const candidates = await ctx.db.count(sql`
    select from releases t where t.repository_id = ${repository.id} and t.deleted_at is null and not t.draft
      and t.prerelease is not true limit 1`);
  const path = `/repositories/${repository.id}/releases/latest`;
  const answer = candidates === 0 ? null : await ctx.upstream.get(path, { priority: "refresh", conditional: true });
  await whileMirrored(ctx, repository, async (tx) => {
    const note = (latest: { id: number | null } | null) =>
      tx
        .update(releaseLists)
        .set({ latestReadAt: startedAt, ...(latest && { latestId: latest.id }) })
        .where(eq(releaseLists.repositoryId, repository.id));
    if (answer?.kind === "ok") {
      const observed = observe("release", answer.body, sightingOf(ctx, repository, startedAt));
      const merged = await mergeObserved(tx, observed);
      await storeMarks(tx, marksForConflicts(merged, startedAt));
      if (answer.validator) await saveValidator(tx, answer.validator);
      await note({ id: keyIn("release", answer.body) });
    } else if (answer?.kind === "unchanged") await note(null);
    else {
      // Without this, the same release could become the latest again and upstream would answer 304.
      await forgetValidators(tx, { path });
      await note({ id: null });
    }
    tx.touch([repository.id]);
  });
}

/** Which release is the latest, a list does not say. */
export const latestRelease = { isKnown: IS_LATEST_KNOWN, read: fetchAndStoreLatest };

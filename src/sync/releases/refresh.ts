import { and, eq, isNull, not } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, isObject, parseStored } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { findHeldReleases } from "../../mirror/read/releases.ts";
import { findRepositoryDocument } from "../../mirror/read/repositories.ts";
import { marksForTies, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { keyIn, observe } from "../../mirror/store/observation.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { releaseLists, releases } from "../../schema.ts";
import { forgetValidators, saveValidator } from "../../upstream/conditional/validators.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { fetchAndStorePage, PAGE_SIZE, sightingOf } from "../reads/pages.ts";
import { beginWholeRefresh, enqueueMarks, settleOrWait } from "../refresh/marks.ts";
import { isReleaseListDue } from "./due.ts";

/**
 * Reads the list of a repository's releases where it is due, and which of them is the latest where that is not known.
 */
export async function refreshReleases(ctx: Context, repositoryId: number): Promise<"merged" | "kept" | "unknown"> {
  const begun = await beginWholeRefresh(ctx, "releases", repositoryId);
  if (!begun) return "unknown";
  const { mark, repository, now } = begun;
  await ctx.db.insert(releaseLists).values({ repositoryId }).onConflictDoNothing();
  const [row] = await ctx.db.query<{ isDue: boolean; isHalfStored: boolean }>(sql`
    select ${isReleaseListDue(now)} as "isDue", l.is_half_stored as "isHalfStored" from release_lists l
      where l.repository_id = ${repositoryId}`);
  if (row?.isDue) await fetchAndStoreReleases(ctx, repository, { isHalfStored: row.isHalfStored });
  const [before] = await findHeldReleases(ctx.db, [repositoryId]);
  if (row?.isDue || before?.latestId === undefined) await fetchAndStoreLatest(ctx, repository);
  const [held] = await findHeldReleases(ctx.db, [repositoryId]);
  return await settleOrWait(ctx, mark, { now, isDone: held != null && held.latestId !== undefined });
}

/** What a walk along a list has met. */
interface ListWalk {
  listed: Set<number>;
  /** How many of the pages were new, and how many were as before. */
  changed: number;
  unchanged: number;
}

/**
 * Reads the list to its end. Releases that the list lacks are asked for one by one: rows move between pages during the
 * read, so the list alone proves nothing.
 */
async function fetchAndStoreReleases(
  ctx: Context,
  repository: MirroredRepository,
  { isHalfStored }: { isHalfStored: boolean },
): Promise<void> {
  const startedAt = ctx.clock.now();
  const showsDrafts = await mayPush(ctx, repository);
  let walk = await walkList(ctx, repository, { conditional: !isHalfStored });
  // A 304 does not say which releases are on its page. So a release that is on no changed page may be on an unchanged
  // one.
  if (walk.changed > 0 && walk.unchanged > 0) walk = await walkList(ctx, repository, { conditional: false });
  const marks = await whileMirrored(ctx, repository, async (tx) => {
    const unlisted =
      walk.changed === 0 ? [] : await findUnlistedReleases(tx, repository.id, { ...walk, startedAt, showsDrafts });
    const doubts = unlisted.map((key) => ({
      ...{ kind: "release" as const, repositoryId: repository.id, key, askedAt: startedAt, notBefore: startedAt },
    }));
    await storeMarks(tx, doubts);
    await tx
      .update(releaseLists)
      .set({ readAt: startedAt, isHalfStored: false, showsDrafts })
      .where(eq(releaseLists.repositoryId, repository.id));
    tx.touch([repository.id]);
    return doubts;
  });
  await enqueueMarks(ctx, marks);
}

async function walkList(
  ctx: Context,
  repository: MirroredRepository,
  { conditional }: { conditional: boolean },
): Promise<ListWalk> {
  const walk: ListWalk = { listed: new Set(), changed: 0, unchanged: 0 };
  const first = `/repositories/${repository.id}/releases?per_page=${PAGE_SIZE}`;
  for (let at: string | null = first; at !== null; ) {
    const { next, rows, isUnchanged } = await fetchAndStorePage(ctx, repository, "release", at, "refresh", {
      conditional,
      remember: async (tx, page) => {
        if (!page.isUnchanged)
          await tx.update(releaseLists).set({ isHalfStored: true }).where(eq(releaseLists.repositoryId, repository.id));
      },
    });
    for (const { key } of rows) walk.listed.add(key);
    if (isUnchanged) walk.unchanged++;
    else walk.changed++;
    at = next;
  }
  return walk;
}

/**
 * Stored releases that the list lacks. Newer ones are left out, since a replica may not know them yet. So are drafts,
 * if upstream does not show them to the mirror.
 */
async function findUnlistedReleases(
  tx: Transaction,
  repositoryId: number,
  { listed, startedAt, showsDrafts }: { listed: ReadonlySet<number>; startedAt: Date; showsDrafts: boolean },
): Promise<number[]> {
  const rows = await tx
    .select({ id: releases.id })
    .from(releases)
    .where(
      and(
        eq(releases.repositoryId, repositoryId),
        isNull(releases.deletedAt),
        not(among(releases.id, [...listed])),
        showsDrafts ? undefined : not(releases.draft),
        seenBefore(sql`${releases.seenAt}`, { readAt: startedAt, now: tx.now() }),
      ),
    )
    .orderBy(releases.id);
  return rows.map(({ id }) => id);
}

/** Whether upstream lets the mirror's credential push, as it said when it showed the repository. */
async function mayPush({ db }: Pick<Context, "db">, { id }: MirroredRepository): Promise<boolean> {
  const row = await findRepositoryDocument(db, id);
  const { permissions } = row ? parseStored<Fields>(row.document) : {};
  return isObject(permissions) && permissions.push === true;
}

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
      await storeMarks(tx, marksForTies(merged, startedAt));
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

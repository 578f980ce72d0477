import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Ancestry, addedTo, type ReadCommit, readCommit, storeCommits } from "../../mirror/store/history.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import {
  InvalidRepresentationError,
  joinObserved,
  type Observed,
  observeListed,
  requireList,
} from "../../mirror/store/observation.ts";
import { pageOfPath } from "../../upstream/protocol/pagination.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/errors.ts";
import { takeMoment } from "../questions/paced.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";

/** How far a new head is followed to where the known history begins. One that lies further is read anew. */
const PAGES_TO_MEET = 3;
/** How far a history is read: its newest 2,000 commits. Those beyond are asked of upstream. */
const MOST_PAGES = 20;

/**
 * How often a history is read anew. That takes a request per hundred commits. Whoever may push, or holds a hook's secret,
 * can move the branch to and fro.
 */
const ANEW_EVERY_MS = 1_800_000;

/** Another worker has stored a history meanwhile. */
class OutrunError extends Error {
  override name = "OutrunError";
}

interface HistoryPage {
  commits: ReadCommit[];
  embedded: Observed;
  next: string | null;
  last: string | null;
}

/**
 * Reads the history of a commit, and stores it as that of the default branch. What a commit's history holds never
 * changes, so its pages neither shift nor have to be asked for again.
 * @param copied the commit that the stored history is of; null: there is none
 * @throws AbsentError when upstream does not show it; RemovedError when the repository is removed meanwhile;
 *   QuestionsPacedError when it was read anew too often
 */
export async function fetchAndStoreHistory(
  ctx: Context,
  repository: MirroredRepository,
  { head, copied }: { head: string; copied: string | null },
): Promise<void> {
  try {
    const begun = copied === null ? [] : await extend(ctx, repository, { head, copied });
    if (begun !== "extended") await fetchAndStoreAnew(ctx, repository, head, begun);
  } catch (error) {
    if (!(error instanceof OutrunError)) throw error;
  }
}

/** Puts what is new before the known history. Answers the pages that were read, if they do not lead there. */
async function extend(
  ctx: Context,
  repository: MirroredRepository,
  { head, copied }: { head: string; copied: string },
): Promise<"extended" | HistoryPage[]> {
  const { id } = repository;
  const pages: HistoryPage[] = [];
  for (let at: string | null = firstPage(repository, head); at !== null && pages.length < PAGES_TO_MEET; ) {
    const page: HistoryPage = await fetchPage(ctx, repository, at, "refresh");
    pages.push(page);
    at = page.next;
    const met = await findMeeting(
      ctx,
      { id, copied },
      pages.flatMap(({ commits }) => commits),
    );
    if (met === null) continue;
    const { added, moved } = met;
    await store(ctx, repository, { pages, copied }, async (tx) => {
      const [{ least } = { least: null }] = await tx.query<{ least: number | null }>(sql`
        select min(c.position) as least from commits c where c.repository_id = ${id}
          and not c.sha = any(${moved.map(({ sha }) => sha)}::text[])`);
      const from = (least ?? 0) - moved.length;
      await storeCommits(
        tx,
        id,
        moved.map((commit, place) => ({ commit, position: from + place })),
      );
      await tx.query(sql`
        update commit_lists set head_sha = ${head}, total = total + ${added.length}, read_at = ${ctx.clock.now()}
          where repository_id = ${id}`);
    });
    return "extended";
  }
  return pages;
}

/**
 * Where the history of a new head goes on like the stored one. `added`: the commits before that place that are new. `moved`:
 * those that get new places. What stays in its order keeps its places, which callers' cursors name.
 */
async function findMeeting(
  ctx: Pick<Context, "db">,
  { id, copied }: { id: number; copied: string },
  all: readonly ReadCommit[],
): Promise<{ added: readonly ReadCommit[]; moved: readonly ReadCommit[] } | null> {
  const known = await ctx.db.query<Ancestry>(sql`
    select c.sha, c.parents from commits c where c.repository_id = ${id} order by c.position limit ${all.length}`);
  const among = await ctx.db.query<{ sha: string }>(sql`
    select c.sha from commits c where c.repository_id = ${id} and c.sha = any(${all.map(({ sha }) => sha)}::text[])`);
  const held = new Set(among.map(({ sha }) => sha));
  const meetIn = (length: number) =>
    addedTo({ known, head: copied, isKnown: (sha) => held.has(sha) }, all.slice(0, length));
  // Mostly they meet right behind what is new.
  const first = all.findIndex((_, at) => meetIn(at + 1) !== null) + 1;
  for (const length of first === 0 ? [] : [first, all.length]) {
    const met = meetIn(length);
    if (!met || !(await areOfOtherTimes(ctx, id, met.next))) continue;
    const read = all.slice(0, length);
    const isInOrder = [...met.added, ...known].slice(0, length).every(({ sha }, place) => read[place]?.sha === sha);
    return { added: met.added, moved: isInOrder ? met.added : read };
  }
  return null;
}

/** Whether these commits are all here, and no two of them of the same second. */
async function areOfOtherTimes({ db }: Pick<Context, "db">, id: number, shas: readonly string[]): Promise<boolean> {
  if (shas.length < 2) return true;
  const times = sql`select distinct c.committed_at from commits c
    where c.repository_id = ${id} and c.sha = any(${shas}::text[])`;
  return (await db.count(times)) === shas.length;
}

/** Reads the history from its beginning, or goes on where an earlier read of the same commit ended. */
async function fetchAndStoreAnew(
  ctx: Context,
  repository: MirroredRepository,
  head: string,
  begun: readonly HistoryPage[],
): Promise<void> {
  const { id } = repository;
  const [before] = await ctx.db.query<{ count: number }>(sql`
    select (select count(*) from commits c where c.repository_id = l.repository_id) as count
      from commit_lists l where l.repository_id = ${id} and l.head_sha is null and l.reading_sha = ${head}`);
  const resumes = begun.length === 0 && before !== undefined && before.count < MOST_PAGES * PAGE_SIZE;
  let start = resumes ? before.count : 0;
  if (!resumes) {
    await takeMoment(ctx, { name: `history ${id}`, everyMs: ANEW_EVERY_MS });
    await whileMirrored(ctx, repository, async (tx) => {
      await tx.query(sql`
        insert into commit_lists as l (repository_id, reading_sha) values (${id}, ${head})
          on conflict (repository_id) do update set head_sha = null, reading_sha = ${head}`);
      await tx.query(sql`delete from commits where repository_id = ${id}`);
      tx.touch([id]);
    });
  }
  const ready = begun.values();
  let at: string | null =
    `${firstPage(repository, head)}${start === 0 ? "" : `&page=${Math.floor(start / PAGE_SIZE) + 1}`}`;
  let last: HistoryPage | null = null;
  for (; at !== null && start < MOST_PAGES * PAGE_SIZE; at = last.next) {
    const page: HistoryPage = ready.next().value ?? (await fetchPage(ctx, repository, at, "backfill"));
    const from = start;
    await store(ctx, repository, { pages: [page], reading: head, count: from }, (tx) =>
      storeCommits(
        tx,
        id,
        page.commits.map((commit, place) => ({ commit, position: from + place })),
      ),
    );
    start += page.commits.length;
    last = page;
  }
  const total = at === null ? start : await countAll(ctx, repository, last);
  await store(ctx, repository, { pages: [], reading: head, count: start }, async (tx) => {
    await tx.query(sql`
      update commit_lists set head_sha = ${head}, reading_sha = null, total = ${total}, read_at = ${ctx.clock.now()}
        where repository_id = ${id}`);
  });
}

/** How many commits a history has: all pages but the last one are full. */
async function countAll(ctx: Context, repository: MirroredRepository, page: HistoryPage | null): Promise<number> {
  const last = page?.last ?? null;
  const number = last === null ? null : pageOfPath(last);
  if (last === null || number === null)
    throw new InvalidRepresentationError("Upstream does not say how long the history of a branch is");
  const { commits } = await fetchPage(ctx, repository, last, "backfill");
  return (number - 1) * PAGE_SIZE + commits.length;
}

function firstPage({ id }: MirroredRepository, head: string): string {
  return `/repositories/${id}/commits?sha=${head}&per_page=${PAGE_SIZE}`;
}

async function fetchPage(
  ctx: Context,
  repository: MirroredRepository,
  path: string,
  priority: Priority,
): Promise<HistoryPage> {
  const answer = await ctx.upstream.get(path, { priority, conditional: false, isBelieved: true });
  if (answer.kind !== "ok") throw new AbsentError(`Upstream does not show the history of ${repository.fullName}`);
  const at = sightingOf(ctx, repository, answer.seenAt);
  const rows = requireList(path, answer.body).map((row) => observeListed(objectOf(row), at));
  const commits = rows.map(({ fields }) => readCommit(fields)).filter((commit) => commit !== null);
  if (commits.length < rows.length)
    throw new InvalidRepresentationError(`Upstream shows a commit of ${repository.fullName} without its hash`);
  const { next = null, last = null } = answer.links;
  return { commits, embedded: joinObserved(rows.map(({ embedded }) => embedded)), next, last };
}

/**
 * Stores pages, if the history is still at the point at which they were read.
 * @throws OutrunError if it is not
 */
async function store(
  ctx: Context,
  repository: MirroredRepository,
  at: { pages: readonly HistoryPage[] } & ({ copied: string } | { reading: string; count: number }),
  write: (tx: Transaction) => Promise<void>,
): Promise<void> {
  const { id } = repository;
  await whileMirrored(ctx, repository, async (tx) => {
    const isThere =
      "copied" in at
        ? sql`l.head_sha = ${at.copied}`
        : sql`l.head_sha is null and l.reading_sha = ${at.reading}
            and ${at.count} = (select count(*) from commits c where c.repository_id = l.repository_id)`;
    const found = await tx.count(sql`select from commit_lists l where l.repository_id = ${id} and ${isThere}`);
    if (found === 0) throw new OutrunError(`The history of ${repository.fullName} was stored meanwhile`);
    await mergeObserved(tx, joinObserved(at.pages.map(({ embedded }) => embedded)));
    await write(tx);
    tx.touch([id]);
  });
}

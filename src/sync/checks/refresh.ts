import { and, eq, ne } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, textOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { nextRound } from "../../mirror/store/marks.ts";
import { checkedCommits } from "../../schema.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { NotYetError } from "../../upstream/protocol/errors.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { isEmptyRepository } from "../reads/repository.ts";
import type { Whole } from "../wholes/whole.ts";
import { askAboutHeads } from "./ask-heads.ts";
import { areChecksDue, confirmationDue, confirmHeads } from "./confirm.ts";
import { areChecksRead, findDueHeads, HAS_UNREAD_CHECKS, type UnreadHead } from "./heads.ts";
import { hearChecks } from "./heard.ts";
import { type CheckList, fetchAndStoreCheckList } from "./lists.ts";

/** From this many heads on, a page of all open pull requests is less work than single questions by id. */
const MANY = 20;

/** Heads that upstream does not show are asked for again when all heads are confirmed, and not before. */
const HEADS_UNREAD_MS = 15 * 60_000;

/** The checks of the heads of pull requests and of the default branch. */
export const checksWhole: Whole = {
  kind: "checks",
  parts: ["checks"],
  due: (ctx) => {
    const before = new Date(ctx.clock.now().getTime() - HEADS_UNREAD_MS);
    const isUnread = sql`(s.checks_confirmed_at <= ${before} and ${HAS_UNREAD_CHECKS})`;
    return { isDue: sql`(${confirmationDue(ctx)} or ${isUnread})`, confirmedAt: sql`s.checks_confirmed_at` };
  },
  hear: hearChecks,
  read: fetchAndStoreDueChecks,
};

/**
 * Reads what is not known of the checks of a repository's heads. A head that was read before every replica knew of it
 * is read once more. Upstream is asked first which heads differ: of those of pull requests that have something unread,
 * and now and then of all.
 */
async function fetchAndStoreDueChecks(
  ...[ctx, { repository, now }, nodes]: Parameters<Whole["read"]>
): ReturnType<Whole["read"]> {
  const { id: repositoryId } = repository;
  const isDue =
    (await areChecksDue(ctx, repositoryId)) || (await findDueHeads(ctx.db, repositoryId, now)).length > MANY;
  const defaultHead = await fetchAndStoreDefaultHead(ctx, repository, { again: isDue });
  const differing = new Set(isDue ? await confirmHeads(ctx, repository) : []);
  const due = await nodes.prepare(() => findDueHeads(ctx.db, repositoryId, now));
  if (due.length <= MANY) for (const sha of await askAboutHeads(ctx, nodes, repository, due)) differing.add(sha);
  const unread = await findDueHeads(ctx.db, repositoryId, now);
  for (const head of unread) await fetchAndStoreHead(ctx, repository, head, { anew: differing.has(head.sha) });
  // No list of pull requests sums up the default branch. Its lists cost nothing while unchanged.
  if (isDue && defaultHead !== null && !unread.some(({ sha }) => sha === defaultHead))
    await fetchAndStoreHead(
      ctx,
      repository,
      { sha: defaultHead, runs: true, statuses: true, suites: true, pull: null },
      { anew: false },
    );
  return { isDone: await areChecksRead(ctx.db, repositoryId), notBefore: (waitMs) => nextRound(now, waitMs) };
}

/**
 * Reads the unknown checks of one head. A commit stays unread if upstream does not show it, or is a mirror that still
 * has to read it. Callers who ask for it are forwarded.
 */
async function fetchAndStoreHead(
  ctx: Context,
  repository: MirroredRepository,
  { sha, runs, statuses, suites }: UnreadHead,
  { anew }: { anew: boolean },
): Promise<void> {
  const read = (list: CheckList, remember?: (tx: Transaction, startedAt: Date) => Promise<void>) =>
    fetchAndStoreCheckList(ctx, repository, { list, sha, priority: "refresh", anew }, remember);
  try {
    if (
      (suites &&
        (await read("check_suite", (tx, at) => noteRead(tx, repository, sha, "suites_read_at", at))) === "absent") ||
      (statuses && (await read("status")) === "absent") ||
      // Check runs come last, since this read notes that all checks are here.
      (runs && (await read("check_run", (tx, at) => noteRead(tx, repository, sha, "read_at", at))) === "absent")
    )
      await noteAbsent(ctx, repository, sha);
  } catch (error) {
    if (!(error instanceof NotYetError)) throw error;
  }
}

/** Takes back that the head's checks are all known: upstream may be hiding them. */
async function noteAbsent(ctx: Context, repository: MirroredRepository, sha: string): Promise<void> {
  await whileMirrored(ctx, repository, async (tx) => {
    await tx
      .update(checkedCommits)
      .set({ readAt: null, suitesReadAt: null })
      .where(and(eq(checkedCommits.repositoryId, repository.id), eq(checkedCommits.sha, sha)));
    tx.touch([repository.id]);
  });
}

async function noteRead(
  tx: Transaction,
  { id }: MirroredRepository,
  sha: string,
  column: "read_at" | "suites_read_at",
  startedAt: Date,
): Promise<void> {
  const at = sql.identifier(column);
  await tx.query(sql`
    insert into checked_commits (repository_id, sha, heard_at, ${at}) values (${id}, ${sha}, ${startedAt}, ${startedAt})
    on conflict (repository_id, sha) do update set ${at} = excluded.${at}`);
}

/** The head of the default branch, asked for if it is not known, or again. An empty repository has none. */
async function fetchAndStoreDefaultHead(
  ctx: Context,
  repository: MirroredRepository,
  { again }: { again: boolean },
): Promise<string | null> {
  const [row] = await ctx.db.query<{ branch: string | null; known: string | null }>(sql`
    select r.default_branch as branch,
        (select d.sha from checked_commits d where d.repository_id = r.id and d.is_default_head limit 1) as known
      from repositories r where r.id = ${repository.id}`);
  if (!row?.branch || (row.known !== null && !again)) return row?.known ?? null;
  const path = `/repositories/${repository.id}/git/ref/heads/${row.branch.split("/").map(encodeURIComponent).join("/")}`;
  const startedAt = ctx.clock.now();
  try {
    const answer = await ctx.upstream.get(path, { priority: "refresh", conditional: row.known !== null });
    if (answer.kind !== "ok") return row.known;
    const sha = textOf(objectOf(objectOf(answer.body).object).sha);
    const { validator } = answer;
    await whileMirrored(ctx, repository, async (tx) => {
      if (sha !== null) await noteDefaultHead(tx, repository, sha, startedAt);
      if (validator) await saveValidator(tx, validator);
    });
    return sha;
  } catch (error) {
    if (error instanceof NotYetError) return row.known;
    if (!isEmptyRepository(error)) throw error;
    return null;
  }
}

/** Replaces the head of the default branch. */
async function noteDefaultHead(tx: Transaction, { id }: MirroredRepository, sha: string, heardAt: Date): Promise<void> {
  await tx
    .insert(checkedCommits)
    .values({ repositoryId: id, sha, isDefaultHead: true, heardAt })
    .onConflictDoUpdate({ target: [checkedCommits.repositoryId, checkedCommits.sha], set: { isDefaultHead: true } });
  await tx
    .update(checkedCommits)
    .set({ isDefaultHead: false })
    .where(and(eq(checkedCommits.repositoryId, id), ne(checkedCommits.sha, sha), checkedCommits.isDefaultHead));
  tx.touch([id]);
}

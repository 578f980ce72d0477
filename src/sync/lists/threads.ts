import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Fields } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type ListKey, noteVersions, storeListed } from "../../mirror/store/lists.ts";
import { storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { joinObserved, observeListed } from "../../mirror/store/observation.ts";
import { inHalves } from "../../upstream/client/bearable-sizes.ts";
import { GraphqlTooHeavyError, NotYetError } from "../../upstream/protocol/errors.ts";
import {
  eachOf,
  goesNowhere,
  key,
  nullable,
  object,
  pageInfo,
  type Read,
  text,
  truth,
  whole,
} from "../../upstream/protocol/field-readers.ts";
import type { GraphqlError, Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/errors.ts";
import { readActor, readSinglePulls } from "../reads/graphql-pulls.ts";
import { sightingOf } from "../reads/pages.ts";
import { userView } from "../reads/pull-observations.ts";
import type { UnreadList } from "./read.ts";

/** The most threads that upstream shows in one page. */
const THREADS_A_PAGE = 100;
/**
 * A point buys so many requests: one for each list of threads, and one for the first comment of each thread that is
 * asked for.
 */
const A_POINT = 100;

/** The first comment tells which mirrored comments belong to the thread. */
function threadsFrom(first: number, after: string | null): string {
  const page = after === null ? `first: ${first}` : `first: ${first}, after: ${JSON.stringify(after)}`;
  return `number headRefOid reviewThreads(${page}) { pageInfo { hasNextPage endCursor } nodes {
    id isResolved isOutdated isCollapsed path line startLine originalLine originalStartLine diffSide startDiffSide subjectType
    resolvedBy { __typename login avatarUrl url id databaseId isSiteAdmin } comments(first: 1) { nodes { fullDatabaseId } } } }`;
}

const readThread = object({
  id: text,
  isResolved: truth,
  isOutdated: truth,
  isCollapsed: truth,
  path: text,
  line: nullable(whole),
  startLine: nullable(whole),
  originalLine: nullable(whole),
  originalStartLine: nullable(whole),
  diffSide: text,
  startDiffSide: nullable(text),
  subjectType: text,
  resolvedBy: nullable(readActor),
  comments: object({ nodes: eachOf(object({ fullDatabaseId: nullable(key) })) }),
});
type ReviewThread = Read<typeof readThread>;

const readThreads = object({
  number: whole,
  headRefOid: text,
  reviewThreads: object({ pageInfo, nodes: eachOf(readThread) }),
});

/**
 * What upstream shows of the threads of a pull request. `head` null: upstream was not asked, since there are no
 * threads.
 */
interface Shown {
  head: string | null;
  threads: ReviewThread[];
  startedAt: Date;
}

type ReadList = (list: UnreadList) => Promise<"read" | "unread">;

/**
 * Prepares the reads of these lists of threads. The read of the first list asks for the threads of several pull
 * requests in one query. It asks for about as many threads as the mirror has, so that upstream charges for few that do
 * not exist. Without a comment there is no thread, and nothing is asked.
 *
 * A list counts as read only if it belongs to the head that the mirror knows, and was asked for when every replica knew
 * the last news. Reading throws AbsentError when upstream does not show the pull request.
 */
export async function threadReader(
  ctx: Context,
  repository: MirroredRepository,
  lists: readonly UnreadList[],
): Promise<ReadList> {
  const roots = await countRoots(
    ctx,
    repository,
    lists.map(({ number }) => number),
  );
  const asked = lists.flatMap(({ number, isOpen }) => {
    const known = roots.get(number);
    return known === undefined ? [] : [{ number, isOpen, threads: Math.max(1, known) }];
  });
  const answers = new Map<number, () => Promise<Shown>>();
  for (const isOpen of [true, false])
    for (const { numbers, most } of forAPoint(asked.filter((one) => one.isOpen === isOpen))) {
      let answer: ReturnType<typeof askThreads> | null = null;
      for (const number of numbers)
        answers.set(number, async () => {
          answer ??= askThreads(ctx, repository, numbers, { most, priority: isOpen ? "refresh" : "backfill" });
          const shown = (await answer).get(number);
          if (shown instanceof Error) throw shown;
          if (!shown)
            throw new AbsentError(`Upstream does not show the review threads of ${repository.fullName}#${number}`);
          return shown;
        });
    }
  return async (list) => {
    const none: Shown = { head: null, threads: [], startedAt: ctx.clock.now() };
    const shown = await (answers.get(list.number)?.() ?? none);
    return await storeThreads(ctx, repository, list, shown);
  };
}

/** Groups pull requests that have about as many threads, so that each group costs a point. Pure. */
function forAPoint(pulls: readonly { number: number; threads: number }[]): { numbers: number[]; most: number }[] {
  const groups: { numbers: number[]; most: number }[] = [];
  for (const { number, threads } of pulls.toSorted((a, b) => a.threads - b.threads)) {
    const group = groups.at(-1);
    if (group && (group.numbers.length + 1) * (1 + threads) <= A_POINT) {
      group.numbers.push(number);
      group.most = threads;
    } else groups.push({ numbers: [number], most: threads });
  }
  return groups;
}

/** How many threads these pull requests have, by the mirrored comments; absent: none, and no comment is missing. */
async function countRoots(
  { db }: Pick<Context, "db">,
  { id }: MirroredRepository,
  numbers: readonly number[],
): Promise<Map<number, number>> {
  const rows = await db.query<{ number: number; roots: number; isSure: boolean }>(sql`
    select x.number, count(distinct coalesce(c.in_reply_to_id, c.id)) as roots,
        bool_and(s.review_comments_synced_at is not null) as "isSure"
      from unnest(${[...numbers]}::integer[]) as x(number) join repository_syncs s on s.repository_id = ${id}
      left join pull_request_review_comments c on c.repository_id = ${id} and c.pull_number = x.number and c.deleted_at is null
      group by 1`);
  return new Map(rows.filter(({ roots, isSure }) => roots > 0 || !isSure).map(({ number, roots }) => [number, roots]));
}

interface Asking {
  /** How many threads to ask for at first. */
  most: number;
  priority: Priority;
}

/** The threads by pull request number. An error concerns one pull request. Deleted pull requests are left out. */
async function askThreads(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  asking: Asking,
): Promise<Map<number, Shown | Error>> {
  const answers = await inHalves(numbers, (some) => askAtOnce(ctx, repository, some, asking));
  return new Map(answers.flatMap((answer) => [...answer]));
}

async function askAtOnce(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  asking: Asking,
): Promise<Map<number, Shown | Error>> {
  const startedAt = ctx.clock.now();
  const first = Math.min(asking.most, THREADS_A_PAGE);
  try {
    const { pulls, faults } = await readPullThreads(ctx, repository, numbers, threadsFrom(first, null), asking);
    const all = new Map<number, Shown | Error>([...faults].map(([number, fault]) => [number, threadsError(fault)]));
    for (const pull of pulls) {
      const { number, headRefOid: head } = pull;
      const { threads, fault } = await readOn(ctx, repository, pull, asking);
      all.set(number, fault ? threadsError(fault) : { head, threads, startedAt });
    }
    return all;
  } catch (error) {
    const [only, ...others] = numbers;
    if (!(error instanceof GraphqlTooHeavyError) || only === undefined || others.length > 0) throw error;
    return new Map([[only, error]]);
  }
}

function readPullThreads(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  fields: string,
  at: Asking,
) {
  const asked = { fields, readPull: readThreads };
  return readSinglePulls(ctx, repository, numbers, asked, { priority: at.priority, isBelieved: true });
}

/** The threads behind the first page. */
async function readOn(
  ctx: Context,
  repository: MirroredRepository,
  { number, headRefOid, reviewThreads }: Read<typeof readThreads>,
  asking: Asking,
): Promise<{ threads: ReviewThread[]; fault: GraphqlError | null }> {
  const threads: ReviewThread[] = [];
  for (let page = reviewThreads, after: string | null = null; ; ) {
    for (const thread of page.nodes) if (thread) threads.push(thread);
    if (!page.pageInfo.hasNextPage) return { threads, fault: null };
    if (goesNowhere(page.pageInfo, after))
      return { threads, fault: { type: null, path: [], message: "a page of them names itself as the next" } };
    after = page.pageInfo.endCursor;
    const fields = threadsFrom(THREADS_A_PAGE, after);
    const { pulls, faults } = await readPullThreads(ctx, repository, [number], fields, asking);
    const [next] = pulls;
    // A push between two pages has changed the list.
    if (!next || next.headRefOid !== headRefOid)
      return { threads, fault: faults.get(number) ?? { type: null, path: [], message: "it was pushed to" } };
    page = next.reviewThreads;
  }
}

function threadsError({ type, message }: GraphqlError): Error {
  const text = `Upstream does not show the review threads of a pull request: ${message}`;
  return type === "NOT_YET" ? new NotYetError(text, "failed") : new AbsentError(text);
}

async function storeThreads(
  ctx: Context,
  repository: MirroredRepository,
  { number, version, heardAt }: UnreadList,
  { head, threads, startedAt }: Shown,
): Promise<"read" | "unread"> {
  const key: ListKey = { repositoryId: repository.id, list: "threads", number };
  const at = sightingOf(ctx, repository, startedAt);
  const lagging = new Date(startedAt.getTime() - REPLICA_LAG_MS);
  return await whileMirrored(ctx, repository, async (tx) => {
    const firsts = threads.map(({ comments: { nodes } }) => nodes[0]?.fullDatabaseId ?? null);
    const known = await tx.query<{ id: number; root: number }>(sql`
      select c.id, coalesce(c.in_reply_to_id, c.id) as root from pull_request_review_comments c
        where c.repository_id = ${repository.id} and c.id = any(${firsts.filter((id) => id !== null)}::bigint[])`);
    const rootOf = new Map(known.map(({ id, root }) => [id, root]));
    const rows = threads.flatMap((thread, place) => {
      const first = firsts[place];
      const fields = first && documentOf(thread, { root: rootOf.get(first) ?? first, number, api: at.api });
      return fields ? [observeListed(fields, at)] : [];
    });
    await mergeObserved(tx, joinObserved(rows.map(({ embedded }) => embedded)));
    await noteVersions(tx, sql`values (${repository.id}, 'threads', ${number}, ${version}, ${heardAt})`);
    await storeListed(tx, key, { rows: rows.map(({ fields }) => fields), start: 0, end: null });
    tx.touch([repository.id]);
    const [isOf = ""] = version.split(" ");
    if (head !== null && head !== isOf) {
      // Either upstream's replica or the mirror has not heard of a push yet.
      if (heardAt < lagging)
        await storeMarks(tx, [
          { kind: "pull_request", repositoryId: repository.id, key: number, askedAt: startedAt, notBefore: startedAt },
        ]);
      return "unread";
    }
    // A recent comment in no thread is a sign of a lagging replica.
    const [read] = await tx.query<{ read_at: Date | null }>(sql`
      update mirrored_lists l set read_at = case when (l.told_at is null or l.told_at < ${lagging}) and not exists (
            select from pull_request_review_comments c where c.repository_id = l.repository_id and c.pull_number = l.number
              and c.deleted_at is null and c.seen_at >= ${lagging} and not exists (select from pull_request_threads t
                where t.repository_id = l.repository_id and t.number = l.number and t.root_id = coalesce(c.in_reply_to_id, c.id)))
          then ${startedAt}::timestamptz end
        where l.repository_id = ${repository.id} and l.list = 'threads' and l.number = ${number} and l.version = ${version}
        returning l.read_at`);
    return read?.read_at ? "read" : "unread";
  });
}

/** The stored form of a thread, with names as in REST. */
function documentOf(
  thread: ReviewThread,
  { root, number, api }: { root: number; number: number; api: string },
): Fields {
  const { resolvedBy } = thread;
  const resolver = resolvedBy?.databaseId == null ? null : userView(resolvedBy, resolvedBy.databaseId, api);
  return {
    node_id: thread.id,
    root_id: root,
    pull_number: number,
    is_resolved: thread.isResolved,
    is_outdated: thread.isOutdated,
    is_collapsed: thread.isCollapsed,
    path: thread.path,
    line: thread.line,
    start_line: thread.startLine,
    original_line: thread.originalLine,
    original_start_line: thread.originalStartLine,
    diff_side: thread.diffSide,
    start_diff_side: thread.startDiffSide,
    subject_type: thread.subjectType,
    resolved_by: resolver,
  };
}

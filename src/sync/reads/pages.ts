import { type Transaction, together } from "../../../db/database.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf } from "../../json.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Mark, marksForConflicts, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import {
  findKeyIn,
  InvalidRepresentationError,
  joinObserved,
  type Observed,
  observe,
  requireList,
  type Sighting,
} from "../../mirror/store/observation.ts";
import { forgetValidators, saveValidator } from "../../upstream/conditional/validators.ts";
import { NEVER } from "../../upstream/protocol/answer.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { pageOfPath, pagesLeft } from "../../upstream/protocol/pagination.ts";
import type { Priority, ReadAnswer, Validator } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { marksForClosers } from "../marks/closers.ts";
import { observeCounts } from "../marks/counts.ts";
import { marksForLost } from "../marks/lost.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { AbsentError } from "../problems/errors.ts";
import { endProblem, findProblems, noteFailure, problemName, type Subject } from "../problems/problems.ts";

export const PAGE_SIZE = 100;
export const PER_PAGE = `per_page=${PAGE_SIZE}`;
/** Reads begin this long before their watermark: `updated_at` counts whole seconds, and replicas lag. */
export const OVERLAP_MS = 30_000;

/** Upstream does not show the repository, or not any more. Whether it was deleted cannot be told from this. */
export class RepositoryUnavailableError extends AbsentError {
  override name = "RepositoryUnavailableError";
}

/**
 * Refuses an answer of a mirror that is still copying: rows that it lacks would count as deleted, or never be met.
 * @throws UpstreamUnavailableError
 */
export function requireCopied(
  { asOf }: Pick<Extract<ReadAnswer, { kind: "ok" }>, "asOf">,
  { fullName }: Pick<MirroredRepository, "fullName">,
): void {
  if (asOf?.getTime() !== NEVER.getTime()) return;
  throw new UpstreamUnavailableError(`Upstream is a mirror itself, and is still copying ${fullName}`, "failed");
}

export interface StoredPage {
  /** Where the list goes on; null: this was the last page. */
  next: string | null;
  resources: number;
  /** Upstream says that it is as it was. */
  isUnchanged: boolean;
  /** How many pages the list has from this one on, when upstream says so. */
  pagesLeft: number | null;
  /** How many rows the page has, also those that cannot be read; 0 for an unchanged one. */
  length: number;
  /** The page's rows; empty for an unchanged one. `updatedAt` is null where upstream sends none. */
  rows: { key: number; updatedAt: Date | null }[];
  /** Both as in `ReadAnswer`. */
  upstreamNow: Date;
  asOf: Date | null;
  /** The validator for a conditional request. Null: the request was conditional already, or upstream gives none. */
  validator: Validator | null;
}

/** The newest `updated_at` of a page; null when it has none. */
export function newestOf({ rows }: Pick<StoredPage, "rows">): Date | null {
  return rows.reduce<Date | null>(
    (newest, { updatedAt }) => (updatedAt && (!newest || updatedAt > newest) ? updatedAt : newest),
    null,
  );
}

/**
 * The same, for a watermark: it never passes upstream's own clock at the answer. A row may be dated in the future, and
 * whatever changed before that time would never be asked for. Such a row stays on the page that each read shows.
 */
export function newestPast({ rows, upstreamNow }: Pick<StoredPage, "rows" | "upstreamNow">): Date | null {
  return newestOf({ rows: rows.filter(({ updatedAt }) => updatedAt && updatedAt <= upstreamNow) });
}

/**
 * Whether the page's rows stand in the order of changes. Upstream may overlook the order that was asked for, or show a
 * row with a change that came after it had its place. Then no time on the page says what stands behind it.
 */
export function isInOrder({ rows }: Pick<StoredPage, "rows">): boolean {
  const times = rows.flatMap(({ updatedAt }) => updatedAt?.getTime() ?? []);
  return times.every((time, at) => time >= (times[at - 1] ?? time));
}

/** A mirror asks its own upstream about contradictions, and normally has the answer within this time. */
const DOUBTS_MS = 120_000;

/**
 * How far a list is known once it has been read up to `newest`. A mirror may get an older change later than a newer
 * one, if a webhook was lost on the way to it. So its list may have gaps beyond what it has confirmed. Pure.
 * @param asOf as in `ReadAnswer`
 */
export function knownUpTo<Newest extends Date | null>(newest: Newest, asOf: Date | null): Newest | Date {
  return newest && earlier(newest, asOf && new Date(asOf.getTime() - DOUBTS_MS));
}

export function earlier(one: Date, other: Date | null): Date {
  return other !== null && other < one ? other : one;
}

export interface Storing {
  /** Given what stands on the page before it is stored. */
  prepare?: (observed: Observed) => Promise<void>;
  /** Writes more in the page's transaction. */
  remember?: (tx: Transaction, page: StoredPage) => Promise<void>;
  /**
   * Whether the page may be asked for conditionally from then on. Leave it false while reads that depend on the page
   * are outstanding: after a crash a 304 would hide them. The caller saves the validator once they are done.
   */
  isDone?: boolean;
  /** Default false. True: what it shows is news, as a delivery is. A first copy counts nothing, and meets later what is named. */
  isNews?: boolean;
  /** Default true. False: our rows are known to differ from the page. */
  conditional?: boolean;
  /** A long list in the order of changes goes on by number, at the last page of a window. Otherwise by time. */
  inWindows?: boolean;
}

/**
 * Reads one page of a list and stores it, in one transaction with the validator and with what `remember` writes. So
 * after a crash the page is either stored and not read again, or not stored. A list in the order of changes continues
 * by time.
 * @throws RepositoryUnavailableError when upstream does not show the list
 * @throws RemovedError when the repository is removed meanwhile
 */
export async function fetchAndStorePage(
  ctx: Context,
  repository: MirroredRepository,
  kind: Kind,
  path: string,
  priority: Priority,
  { prepare, remember, isDone = true, isNews = false, conditional = true, inWindows = false }: Storing = {},
): Promise<StoredPage> {
  const answer = await ctx.upstream.get(path, { priority, conditional });
  const page = await observePage(ctx, repository, { kind, path, inWindows }, answer);
  await prepare?.(page.observed);
  let marks: Mark[] = [];
  await whileMirrored(ctx, repository, async (tx) => {
    const now = ctx.clock.now();
    const { seen, shapes } = page.observed;
    const counted = isNews ? await observeCounts(tx, seen, now) : [];
    const merged = await mergeObserved(tx, { seen: [...seen, ...counted], shapes });
    const untold = isNews ? [...(await marksForLost(tx, seen, now)), ...marksForClosers(merged, now)] : [];
    marks = [...marksForConflicts(merged, now), ...untold, ...page.unread];
    await together([
      storeMarks(tx, marks),
      page.validator ? (isDone ? saveValidator : forgetValidators)(tx, page.validator) : Promise.resolve(),
      remember?.(tx, page) ?? Promise.resolve(),
    ]);
  });
  await enqueueMarks(ctx, marks);
  return page;
}

async function observePage(
  ctx: Context,
  repository: MirroredRepository,
  { kind, path, inWindows }: { kind: Kind; path: string; inWindows: boolean },
  answer: ReadAnswer,
): Promise<StoredPage & { observed: Observed; unread: Mark[] }> {
  const { phase, rows: rowsKey } = resourceOf(kind).upstream;
  // A mirror says which phases it lacks. An empty list of such a kind says nothing.
  if (phase !== undefined && answer.missing?.includes(phase))
    throw new RepositoryUnavailableError(`Upstream is a mirror itself, and its ${phase} are missing`);
  switch (answer.kind) {
    case "unchanged":
      return {
        observed: joinObserved([]),
        unread: [],
        isUnchanged: true,
        next: answer.next,
        resources: 0,
        pagesLeft: null,
        length: 0,
        rows: [],
        upstreamNow: answer.upstreamNow,
        asOf: answer.asOf,
        validator: null,
      };
    case "ok": {
      const rows = requireList(path, rowsKey === undefined ? answer.body : (objectOf(answer.body)[rowsKey] ?? null));
      const at = sightingOf(ctx, repository, answer.seenAt);
      const { observed, unread, nameless } = observeRows(kind, rows, at);
      await noteNameless(ctx, repository, kind, nameless);
      const isWholeList = !answer.links.next && (pageOfPath(path) ?? 1) === 1 && !path.includes("since=");
      if (isWholeList) await endNameless(ctx, repository, kind, answer.seenAt);
      const page = {
        next: answer.links.next ?? null,
        pagesLeft: pagesLeft(path, answer.links),
        length: rows.length,
        rows: observed.map((one) => keyAndTime(one, kind)),
        upstreamNow: answer.upstreamNow,
        asOf: answer.asOf,
      };
      const { next, resources } = path.includes(BY_CHANGE)
        ? afterChanges(path, page, inWindows)
        : { next: page.next, resources: rows.length };
      const validator = answer.validator && nameless.length === 0 ? { ...answer.validator, next } : null;
      return {
        ...page,
        isUnchanged: false,
        next,
        resources,
        validator,
        observed: joinObserved(observed),
        unread: unread.map((key) => markForUnread(ctx, repository, kind, key)),
      };
    }
    case "moved":
    case "missing":
      throw new RepositoryUnavailableError(
        `Upstream does not show ${path}: ${answer.kind === "missing" ? answer.message : "it has moved"}`,
      );
    default:
      return answer satisfies never;
  }
}

/** The kinds whose single resource upstream shows at an address that is made of the key. */
const SHOWN_ALONE: ReadonlySet<Kind> = new Set(["issue", "pull_request", "issue_comment", "review_comment"]);

/**
 * Observes the rows of a list, each by itself: one that lacks what it must have concerns no other. `unread`: the keys of
 * those that can be read alone. `nameless`: what is wrong with the others.
 */
export function observeRows(
  kind: Kind,
  rows: readonly Json[],
  at: Sighting,
): { observed: Observed[]; unread: number[]; nameless: string[] } {
  const observed: Observed[] = [];
  const unread: number[] = [];
  const nameless: string[] = [];
  for (const row of rows) {
    try {
      observed.push(observe(kind, row, at));
    } catch (error) {
      if (!(error instanceof InvalidRepresentationError)) throw error;
      const key = findKeyIn(kind, row);
      if (key !== null && SHOWN_ALONE.has(kind)) unread.push(key);
      else nameless.push(error.message);
    }
  }
  return { observed, unread, nameless };
}

/** No recent change is involved, so no replica can lag, and one read settles the mark. */
export function markForUnread(ctx: Pick<Context, "clock">, { id }: MirroredRepository, kind: Kind, key: number): Mark {
  const now = ctx.clock.now();
  const askedAt = new Date(now.getTime() - 2 * REPLICA_LAG_MS);
  return { kind, repositoryId: id, key, askedAt, notBefore: now };
}

/** The status names a list with a row that can neither be read nor asked for alone. */
export async function noteNameless(
  ctx: Context,
  repository: MirroredRepository,
  kind: Kind,
  [reason]: readonly string[],
): Promise<void> {
  if (reason === undefined) return;
  const subject = namelessIn(repository, kind);
  const known = (await findProblems(ctx, [subject])).get(problemName(subject)) ?? null;
  const problem = `Upstream shows a row of ${repository.fullName} that cannot be read, and all others are stored: ${reason}`;
  await noteFailure(ctx, subject, { cause: "unavailable", problem, known });
}

/** The whole list was read since `startedAt`: unless one of its rows was such a row, the status names it no longer. */
export async function endNameless(
  ctx: Context,
  repository: MirroredRepository,
  kind: Kind,
  startedAt: Date,
): Promise<void> {
  const subject = namelessIn(repository, kind);
  const known = (await findProblems(ctx, [subject])).get(problemName(subject));
  if (known && known.failedAt < startedAt) await endProblem(ctx, subject, known);
}

function namelessIn({ id }: MirroredRepository, kind: Kind): Subject {
  return { task: "refresh", key: `rows of ${kind} in ${id}`, repositoryId: id };
}

/** How many pages of a long list are read by number before it goes on by time: see `windows.ts` in `backfill/`. */
export const PAGES_A_WINDOW = 10;

/**
 * A list in the order of changes, the oldest first. `fetchAndStorePage` follows it by time, or within a window by
 * number.
 */
export const BY_CHANGE = "sort=updated&direction=asc";

/** The same list, in the order of changes, from the first that is not older than `since`. */
export function pathSince(path: string, since: Date): string {
  return `${path.replace(/&(since|page|after)=[^&]*/g, "")}&since=${toSeconds(since)}`;
}

/**
 * The list continues from the time at which the page ended, not by number. A row that changes or is deleted leaves its
 * place and shifts all later rows, so paging by number would skip rows. Rows of that second are met twice and count
 * once.
 */
function afterChanges(
  path: string,
  { next, rows, pagesLeft }: Pick<StoredPage, "next" | "rows" | "pagesLeft">,
  inWindows: boolean,
): Pick<StoredPage, "next" | "resources"> {
  const asked = new URLSearchParams(path.slice(path.indexOf("?"))).get("since");
  const isNewer = (at: Date | null) => asked === null || at === null || at > new Date(asked);
  const resources = rows.filter(({ updatedAt }) => isNewer(updatedAt)).length;
  if (!isInOrder({ rows })) return { resources, next };
  if (inWindows && pageOfPath(path) === null && pagesLeft !== null && pagesLeft > PAGES_A_WINDOW)
    return { resources, next: `${path}&page=${PAGES_A_WINDOW}` };
  const newest = newestOf({ rows });
  // More than a page within one second: there is no later moment to go on from.
  return { resources, next: next === null || !newest || !isNewer(newest) ? next : pathSince(path, newest) };
}

/** Writes a moment as upstream does, so that one moment gives one address. */
function toSeconds(moment: Date): string {
  return moment.toISOString().replace(/\.\d+Z$/, "Z");
}

/** Where REST lists all reviews of these pull requests. */
export function reviewLists(repository: MirroredRepository, numbers: readonly number[]): string[] {
  return numbers.map((number) => `/repositories/${repository.id}/pulls/${number}/reviews?per_page=${PAGE_SIZE}`);
}

/** Reads and stores all reviews of these pull requests by REST, page by page. */
export async function fetchAndStoreReviewLists(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  priority: Priority,
): Promise<void> {
  for (const list of reviewLists(repository, numbers)) {
    for (let at: string | null = list; at !== null; )
      at = (await fetchAndStorePage(ctx, repository, "review", at, priority)).next;
  }
}

/** How a read of the repository's resources is marked. */
export function sightingOf(
  ctx: Pick<Context, "config">,
  { id, fullName, htmlUrl }: MirroredRepository,
  seenAt: Date,
): Sighting {
  return {
    api: ctx.config.upstreamUrl,
    repository: { id, fullName, htmlUrl },
    seenAt,
    read: true,
    shapeIds: new Map(),
  };
}

function keyAndTime({ seen }: Observed, kind: Kind): StoredPage["rows"][number] {
  const main = seen.find((one) => one.kind === kind && one.extent !== "partial");
  if (!main) throw new Error(`An observed ${kind} has lost itself`);
  // As it was sent, since it says where the row stands in the list.
  const updatedAt = Date.parse(String(main.fields.updated_at));
  return { key: main.key, updatedAt: Number.isNaN(updatedAt) ? null : new Date(updatedAt) };
}

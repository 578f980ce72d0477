import type { PgTable } from "drizzle-orm/pg-core";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { joinObserved, type Observed, observe, requireList, type Seen } from "../../mirror/store/observation.ts";
import { type IssuePlace, placeIn } from "../../mirror/store/transfers.ts";
import { isDoubtful } from "../../upstream/protocol/doubts.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import type { Priority, ReadAnswer } from "../../upstream/protocol/upstream.ts";
import { isIssuesOff } from "../../upstream/protocol/wording.ts";
import { observeRows, sightingOf } from "./pages.ts";

interface ReadOutcome {
  observed: Observed;
  outcome: "merged" | "deleted" | "kept";
  /** It is absent, which a replica that has not heard of it yet would answer, too. Nothing is proved. */
  isTooEarly?: boolean;
  /** Where upstream has moved the issue to. */
  movedTo?: IssuePlace | null;
  /** Upstream's words, if it does not show the repository. */
  missing?: string;
  /** Issues are off in the repository, so none of them is shown, and none is proved to be deleted. */
  isOff?: boolean;
  /** Upstream is a mirror, and asks its own upstream about it just now. */
  isDoubtful?: boolean;
}

const DOUBTFUL: ReadOutcome = { observed: joinObserved([]), outcome: "kept", isDoubtful: true };
const TOO_EARLY: ReadOutcome = { observed: joinObserved([]), outcome: "kept", isTooEarly: true };

/**
 * Reads one resource. "deleted": upstream says so; `observed` has the tombstones. "kept": nothing is proved.
 * @param mayLag whether the replica that calls these absent may not have heard of them yet
 * @param findRepository reads a repository whose resource is absent, after it was found to be
 */
export async function readAnew(
  ctx: Context,
  wanted: ResourceKey,
  repository: MirroredRepository | null,
  path: string,
  {
    priority,
    mayLag = async () => false,
    findRepository = (id) => ctx.upstream.get(`/repositories/${id}`, { priority }),
  }: {
    priority: Priority;
    mayLag?: (absent: Observed) => Promise<boolean>;
    findRepository?: (id: number) => Promise<ReadAnswer>;
  },
): Promise<ReadOutcome> {
  if (wanted.kind === "label" && repository) {
    const read = await readLabels(ctx, repository, wanted, path, priority);
    return read.outcome === "deleted" && (await mayLag(read.observed)) ? TOO_EARLY : read;
  }
  const answer = await ctx.upstream.get(path, { priority });
  if (isDoubtful(answer.doubts, wanted)) return DOUBTFUL;
  if (answer.kind === "ok") {
    const at = repository
      ? sightingOf(ctx, repository, answer.seenAt)
      : { api: ctx.config.upstreamUrl, seenAt: answer.seenAt, read: true };
    // REST leaves out what we know of users from their own reads, and of reviews from GraphQL.
    const isSingle = ["repository", "issue", "pull_request"].includes(wanted.kind);
    return { observed: observe(wanted.kind, answer.body, { ...at, isSingle }), outcome: "merged" };
  }
  if (wanted.kind === "repository" && answer.kind === "missing")
    return {
      observed: joinObserved([]),
      outcome: "kept",
      missing: `Upstream answers ${answer.status} (${answer.message}): it was deleted, or no token may see it any more`,
    };
  if (answer.kind === "missing" && isIssuesOff(answer.message))
    return { observed: joinObserved([]), outcome: "kept", isOff: true };
  const isAbsent = repository !== null && answer.kind === "missing" && answer.status === 404;
  if (isAbsent && (await mayLag(tombstonesOf(ctx, wanted)))) return TOO_EARLY;
  if (
    !repository ||
    !(await isDeletion(ctx, wanted, answer, () => findRepository(repository.id))) ||
    (await isOtherSideShown(ctx, wanted, priority))
  )
    return { observed: joinObserved([]), outcome: "kept" };
  const movedTo = answer.kind === "moved" && wanted.kind === "issue" ? placeIn(answer.location) : null;
  return { observed: tombstonesOf(ctx, wanted), outcome: "deleted", movedTo };
}

/** A label's only address is its name, which may have changed, so the whole list is read. */
async function readLabels(
  ctx: Context,
  repository: MirroredRepository,
  wanted: ResourceKey,
  first: string,
  priority: Priority,
): Promise<ReadOutcome> {
  const observed: Observed[] = [];
  let isWhole = true;
  for await (const page of pages(ctx.upstream, first, { priority })) {
    if (isDoubtful(page.doubts, wanted)) return DOUBTFUL;
    if (page.kind !== "ok") return { observed: joinObserved(observed), outcome: "kept" };
    const rows = requireList(page.path, page.body);
    const read = observeRows("label", rows, sightingOf(ctx, repository, page.seenAt));
    observed.push(...read.observed);
    isWhole &&= read.nameless.length === 0;
  }
  const isThere = observed.some(({ seen }) => seen.some((one) => one.kind === "label" && one.key === wanted.key));
  if (isThere) return { observed: joinObserved(observed), outcome: "merged" };
  // A row that cannot be read may be this label.
  return !isWhole
    ? { observed: joinObserved(observed), outcome: "kept" }
    : { observed: joinObserved([...observed, tombstonesOf(ctx, wanted)]), outcome: "deleted" };
}

/**
 * Upstream says 410 of what was deleted, and "moved" of what was transferred. Its 404 may also mean that we may not see
 * the repository any more, or that pull requests are switched off. So the repository is asked for too.
 */
async function isDeletion(
  ctx: Context,
  wanted: ResourceKey,
  answer: Exclude<ReadAnswer, { kind: "ok" }>,
  findRepository: () => Promise<ReadAnswer>,
): Promise<boolean> {
  switch (answer.kind) {
    case "unchanged":
      return false;
    case "moved":
      return true;
    case "missing": {
      if (answer.status === 410) return true;
      if (answer.status !== 404) return false;
      const shown = await findRepository();
      if (shown.kind !== "ok") return false;
      return objectOf(shown.body).has_pull_requests !== false || !(await isOfPull(ctx, wanted));
    }
    default:
      return answer satisfies never;
  }
}

/**
 * A pull request has two sides, each with an address. One side may be switched off or forbidden while upstream shows
 * the other. A tombstone would hide both.
 */
async function isOtherSideShown(
  ctx: Context,
  { kind, repositoryId, key }: ResourceKey,
  priority: Priority,
): Promise<boolean> {
  if (kind !== "issue" && kind !== "pull_request") return false;
  if (!(await isPullsNumber(ctx, repositoryId, key))) return false;
  const other = `/repositories/${repositoryId}/${kind === "issue" ? "pulls" : "issues"}/${key}`;
  return (await ctx.upstream.get(other, { priority })).kind === "ok";
}

/** Whether upstream shows it only while pull requests are switched on. */
async function isOfPull(ctx: Context, { kind, repositoryId, key }: ResourceKey): Promise<boolean> {
  if (kind === "issue") return await isPullsNumber(ctx, repositoryId, key);
  return resourceOf(kind).upstream.isOfPulls === true;
}

async function isPullsNumber({ db }: Pick<Context, "db">, repositoryId: number, number: number): Promise<boolean> {
  const found = await db.count(sql`
    select from issues where repository_id = ${repositoryId} and number = ${number} and is_pull_request and id is not null`);
  return found > 0;
}

export function tombstonesOf(ctx: Pick<Context, "clock">, { kind, repositoryId, key }: ResourceKey): Observed {
  const tombstone = (of: Kind): Seen => ({
    kind: of,
    repositoryId,
    key,
    fields: {},
    deleted: true,
    extent: "whole",
    stamp: { updatedAt: 0, seenAt: ctx.clock.now().getTime(), read: true },
  });
  const isNumbered = kind === "issue" || kind === "pull_request";
  return { seen: isNumbered ? [tombstone("issue"), tombstone("pull_request")] : [tombstone(kind)], shapes: new Map() };
}

/** The resource's path at upstream; null if the mirror knows too little of it. */
export async function upstreamPathOf(
  ctx: Pick<Context, "db">,
  { kind, repositoryId, key }: ResourceKey,
): Promise<string | null> {
  const { upstream, isGlobal, table } = resourceOf(kind);
  if (!upstream.path) return null;
  const below = isGlobal ? "" : `/repositories/${repositoryId}`;
  if (upstream.numberColumn === undefined) return below + upstream.path(key, null);
  const { numberColumn, namedBy } = upstream;
  const [own] = await findNumbers(ctx, { table, keyColumn: "id", numberColumn }, { repositoryId, key });
  const [named] =
    own === undefined && namedBy
      ? await findNumbers(ctx, { table: namedBy.table, keyColumn: namedBy.column, numberColumn }, { repositoryId, key })
      : [];
  const number = own ?? named ?? null;
  return number === null ? null : below + upstream.path(key, number);
}

async function findNumbers(
  ctx: Pick<Context, "db">,
  { table, keyColumn, numberColumn }: { table: PgTable; keyColumn: string; numberColumn: string },
  { repositoryId, key }: Omit<ResourceKey, "kind">,
): Promise<number[]> {
  const rows = await ctx.db.query<{ number: number }>(sql`
    select ${sql.identifier(numberColumn)} as number from ${table}
      where repository_id = ${repositoryId} and ${sql.identifier(keyColumn)} = ${key} order by id desc limit 1`);
  return rows.map(({ number }) => number);
}

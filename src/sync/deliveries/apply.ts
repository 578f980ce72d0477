import { type Transaction, together } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import type { Context } from "../../context.ts";
import { recordEvents, wakeTargets } from "../../events/log.ts";
import { settleDeliveries, type Taken, takeDeliveries } from "../../inbox/inbox.ts";
import {
  answeredByAny,
  LACKED_KEYS,
  type Mark,
  type MarkKey,
  marksForConflicts,
  marksForMergeability,
  nextRound,
  storeMarks,
} from "../../mirror/store/marks.ts";
import { type Merged, mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { joinObserved, type Seen } from "../../mirror/store/observation.ts";
import { storeTransfer } from "../../mirror/store/transfers.ts";
import { enqueueTask, orLater } from "../../queues/queues.ts";
import { aboutOf, organizationOf, type RefreshAsk, saysPrivate } from "../events/events.ts";
import { FOLLOWED_EVENTS, partsOfEvent } from "../events/followed.ts";
import {
  type DeliveryContent,
  InvalidPayloadError,
  type MergedDeliveries,
  type Parsed,
  parse,
  readDelivery,
} from "../events/read.ts";
import { noteInstallation } from "../following/installation.ts";
import { pauseWithin } from "../following/pause.ts";
import { FOLLOWED, findMirrored, TOLD_DELETED } from "../following/state.ts";
import { type HeardDelivery, heardAnew, lastSaid, reportedChangesOf } from "../found/reported-changes.ts";
import { marksForClosers } from "../marks/closers.ts";
import { marksForCounting, observeCounts } from "../marks/counts.ts";
import { marksForLost } from "../marks/lost.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { findHeldOrganizations } from "../people/heard.ts";
import { tryAgain } from "../problems/problems.ts";
import { hearWholes } from "../refresh/wholes.ts";
import { accountOf, findHolders, refusalOfSigner, repositoryIdOf } from "./signer.ts";

/**
 * Events of a repository's life: renamed, shown, hidden, moved. Requests that upstream refused before may be allowed
 * now.
 */
const LIFE_EVENTS: ReadonlySet<string> = new Set(["repository", "public"]);

/** A delivery's outcome; "known": it was settled before, or is no longer there. */
export type Applied = "applied" | "ignored" | "known";

/**
 * Applies deliveries of the inbox, in one transaction with their new status: done twice, they have one effect. What
 * their payloads show is merged at once, in the order of receipt. Deliveries that would make the batch too large are
 * not in the answer; the first always is. A payload that cannot be what its event says fails alone.
 * @throws whatever Postgres refuses; then none is applied
 */
export async function applyDeliveries(
  ctx: Context,
  deliveryIds: readonly string[],
): Promise<Map<string, Applied | InvalidPayloadError>> {
  const outcomes = new Map<string, Applied | InvalidPayloadError>();
  // Spans go by the machine's clock, and not by the context's.
  const startedAt = new Date();
  const { marks, selects, targets, open } = await ctx.db.transaction(async (tx) => {
    const [open, named] = await together([takeDeliveries(tx, deliveryIds), findNamed(tx, deliveryIds)]);
    for (const id of deliveryIds) outcomes.set(id, "known");
    for (const { id, payload } of open) if (payload === null) outcomes.delete(id);
    const { applied, ignored, invalid, told, parts } = await readAll(ctx, tx, open, named);
    const shown = await ownOf(
      tx,
      applied.map((one) => one.shown),
    );

    const asks = await openAsks(
      tx,
      shown.flatMap((one) => one.asks),
    );
    const { seen, shapes } = joinObserved(shown.flatMap(({ observed }) => observed));
    const observed = { seen: [...seen, ...(await observeCounts(tx, seen, ctx.clock.now()))], shapes };
    const settled = [...applied.map(({ id }) => ({ id, ignored: null })), ...ignored];
    const [merged] = await together([
      mergeObserved(tx, observed, lastSaid(told)),
      settleDeliveries(tx, settled, ctx.clock.now()),
    ]);

    const askedAt = ctx.clock.now();
    const heard = { seen: observed.seen, shown, parts, askedAt };
    const [unread, left, anew] = await together([
      hearWholes(tx, heard),
      marksLeft(tx, heard, { merged, asks }),
      heardAnew(tx, told, merged, askedAt),
    ]);
    const marks = [...left, ...unread];
    await storeMarks(tx, marks);
    await followLife(ctx, tx, applied, shown);

    for (const { id, ignored } of settled) outcomes.set(id, ignored === null ? "applied" : "ignored");
    for (const { id, error } of invalid) outcomes.set(id, error);
    const targets = anew.length > 0 ? await recordEvents(tx, anew) : [];
    return { marks, targets, selects: shown.some(({ installed }) => installed !== null), open };
  });
  meterSettled(ctx, open, outcomes);
  traceSettled(ctx, open, outcomes, startedAt);
  // The scheduler would have the selections resolved within a minute.
  if (selects) await orLater(ctx, { task: "select" }, () => enqueueTask(ctx, "select"));
  await enqueueMarks(ctx, marks);
  await wakeTargets(ctx, targets);
  return outcomes;
}

/** Marks for everything else that the deliveries leave open, so that upstream is asked. It stores nothing. */
async function marksLeft(
  tx: Transaction,
  { seen, shown, askedAt }: MergedDeliveries,
  { merged, asks }: { merged: readonly Merged[]; asks: readonly RefreshAsk[] },
): Promise<Mark[]> {
  const counting = shown.flatMap((one) => one.counting.map((issue) => ({ ...issue, toldBy: one.repositoryId })));
  return [
    // A conflict is asked about after the replicas' lag, since an earlier read could not settle it. One round serves many
    // conflicts.
    ...marksForConflicts(merged, askedAt).map((conflict) => askedSince(askedAt, conflict)),
    ...asks.map((ask) => askedSince(askedAt, ask)),
    ...(await marksForMergeability(tx, seen, askedAt)),
    ...(await marksForIssueSides(tx, seen, askedAt)),
    ...(await marksForLost(tx, seen, askedAt)),
    ...marksForClosers(merged, askedAt),
    ...(await marksForCounting(tx, counting, askedAt)),
    ...toldDeleted(shown).map((id) => deletionMark(id, askedAt)),
  ];
}

function toldDeleted(shown: readonly DeliveryContent[]): number[] {
  return shown.flatMap(({ deletedRepositoryId: id }) => id ?? []);
}

/** Repositories were moved, renamed, shown, hidden or deleted, or an App was installed. */
async function followLife(
  ctx: Context,
  tx: Transaction,
  applied: SortedDeliveries["applied"],
  shown: readonly DeliveryContent[],
): Promise<void> {
  for (const { transfer } of shown) if (transfer) await storeTransfer(tx, transfer.from, transfer.to);
  const changed = applied.flatMap(({ taken, shown: { repositoryId } }) =>
    LIFE_EVENTS.has(taken.event) ? (repositoryId ?? []) : [],
  );
  if (changed.length > 0) await tryAgain(tx, { repositoryIds: changed });
  const deleted = toldDeleted(shown);
  if (deleted.length > 0) await pauseWithin(ctx, tx, deleted, { from: FOLLOWED, problem: TOLD_DELETED });
  for (const {
    taken,
    shown: { installed },
  } of applied)
    if (installed) await noteInstallation(tx, installed, taken.receivedAt);
}

/**
 * Takes out what deliveries say about other mirrored repositories, such as the head of a pull request or the origin of
 * an issue. Each repository has its own secret, so a signature for one proves nothing about another.
 */
async function ownOf(tx: Transaction, shown: readonly DeliveryContent[]): Promise<DeliveryContent[]> {
  const isOther = ({ kind, key }: Seen, { repositoryId }: DeliveryContent) =>
    kind === "repository" && key !== repositoryId;
  const others = shown.flatMap((one) => [
    ...one.observed.flatMap(({ seen }) => seen.filter((each) => isOther(each, one)).map(({ key }) => key)),
    ...(one.transfer && one.transfer.from.repositoryId !== one.repositoryId ? [one.transfer.from.repositoryId] : []),
  ]);
  if (others.length === 0) return [...shown];
  const followed = await findMirrored(tx, [...new Set(others)]);
  return shown.map((one) => {
    const observed = one.observed.map(({ seen, shapes }) => ({
      seen: seen.filter((each) => !(isOther(each, one) && followed.has(each.key))),
      shapes,
    }));
    const from = one.transfer?.from.repositoryId;
    const isOthers = from !== undefined && from !== one.repositoryId && followed.has(from);
    return { ...one, observed, transfer: isOthers ? null : one.transfer };
  });
}

/** The mirrored parts of repositories, by their ids. */
type MirroredParts = ReadonlyMap<number, readonly MirrorPart[]>;

/** What is mirrored of repositories and who owns them, as upstream showed it, by their ids. */
type MirroredNamed = ReadonlyMap<number, { mirrors: readonly MirrorPart[]; ownerId: number | null }>;

/** Deliveries that were read, by what becomes of them. */
interface SortedDeliveries {
  applied: { id: string; taken: Taken; shown: DeliveryContent }[];
  ignored: { id: string; ignored: string }[];
  invalid: { id: string; error: InvalidPayloadError }[];
  /**
   * Deliveries to tell to targets, in the order of receipt: all that were applied, and events that the mirror does not
   * follow.
   */
  told: HeardDelivery[];
  parts: MirroredParts;
}

/** @param named the mirrored repositories among those that the receiver read in the payloads */
async function readAll(
  { config }: Context,
  tx: Transaction,
  open: readonly Taken[],
  named: MirroredNamed,
): Promise<SortedDeliveries> {
  const sorted: Omit<SortedDeliveries, "parts"> = { applied: [], ignored: [], invalid: [], told: [] };
  const collect = <One>(id: string, make: () => One): One | undefined => {
    try {
      return make();
    } catch (error) {
      // Any other error is a bug, and ends the batch.
      if (!(error instanceof InvalidPayloadError)) throw error;
      sorted.invalid.push({ id, error });
      return undefined;
    }
  };
  const parsed = open
    .filter(({ payload }) => payload !== null)
    .flatMap((taken) => collect(taken.id, () => parse(taken)) ?? []);
  const mirrored = new Map([...named, ...(await findUnnamed(tx, parsed))]);
  const owners = new Map([...mirrored].map(([id, { ownerId }]) => [id, ownerId]));
  const holders = await findHolders(tx, parsed, owners);
  const parts = new Map([...mirrored].map(([id, { mirrors }]) => [id, mirrors]));
  const organizations = await findHeldOrganizations(
    tx,
    parsed.flatMap((one) => (one.repository ? [] : (organizationOf(one.payload) ?? []))),
  );
  const batch = { mirrored: parts, organizations, shapeIds: new Map<string, string>() };
  for (const one of parsed) {
    const { id } = one.taken;
    const refusal = refusalOfSigner(config, one, holders);
    if (refusal !== null) {
      sorted.ignored.push({ id, ignored: refusal });
      continue;
    }
    const shown = collect(id, () => readDelivery(config, one, batch));
    if (shown === undefined) continue;
    if (typeof shown === "string") sorted.ignored.push({ id, ignored: shown });
    else sorted.applied.push({ id, taken: one.taken, shown });
    if (typeof shown !== "string" || isUnfollowed(one)) {
      const repositoryId = repositoryIdOf(one);
      const reportedChanges = reportedChangesOf(one.taken.event, one.payload, repositoryId);
      const [ownerId, about] = [accountOf(one, holders), aboutOf(one.payload)];
      const isPrivate = saysPrivate(one.payload);
      sorted.told.push({ deliveryId: id, repositoryId, ownerId, isPrivate, about, reportedChanges });
    }
  }
  return { ...sorted, parts };
}

/**
 * Whether the mirror does not follow the event, or only for a part. Targets hear such events too, but no ping: a ping
 * is about our own hook.
 */
function isUnfollowed({ taken: { event } }: Parsed): boolean {
  return event !== "ping" && (!FOLLOWED_EVENTS.has(event) || partsOfEvent(event).length > 0);
}

/** The mirrored repositories that only the payloads name: a row of an earlier version may have no `repository_id`. */
async function findUnnamed(tx: Transaction, parsed: readonly Parsed[]): Promise<MirroredNamed> {
  const ids = parsed.flatMap(({ taken, repository }) =>
    repository && taken.repositoryId === null ? [repository.id] : [],
  );
  return ids.length === 0
    ? new Map()
    : await findParts(tx, sql`s.repository_id = any(${sql.array(ids, "bigint")}::bigint[])`);
}

/** The mirrored repositories among those that the receiver read in the payloads. */
async function findNamed(tx: Transaction, deliveryIds: readonly string[]): Promise<MirroredNamed> {
  return await findParts(
    tx,
    sql`s.repository_id in (select repository_id from deliveries where id = any(${sql.array(deliveryIds, "uuid")}::uuid[]))`,
  );
}

/** The repositories that are mirrored among these. */
async function findParts(tx: Transaction, areAsked: SQL): Promise<MirroredNamed> {
  const rows = await tx.prepared<{ id: number; mirrors: MirrorPart[]; ownerId: number | null }>(sql`
    select s.repository_id as id, s.mirrors, r.owner_id as "ownerId"
      from repository_syncs s left join repositories r on r.id = s.repository_id where ${MIRRORED} and ${areAsked}`);
  return new Map(rows.map(({ id, ...known }) => [id, known]));
}

/** The asks that still hold. Call it before the observations are merged. */
async function openAsks(tx: Transaction, asks: readonly RefreshAsk[]): Promise<RefreshAsk[]> {
  const doubtful = asks.filter(({ ifPlainIssue }) => ifPlainIssue);
  if (doubtful.length === 0) return [...asks];
  const repositoryIds = doubtful.map(({ repositoryId }) => repositoryId);
  const numbers = doubtful.map(({ key }) => key);
  const rows = await tx.prepared<{ issue: string }>(sql`
    select x.r || '/' || x.n as issue from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(numbers, "integer")}) as x(r, n)
      join issues i on i.repository_id = x.r and i.number = x.n and i.id is not null and not i.is_pull_request`);
  const plain = new Set(rows.map(({ issue }) => issue));
  return asks.filter(({ ifPlainIssue, repositoryId, key }) => !ifPlainIssue || plain.has(`${repositoryId}/${key}`));
}

/**
 * Marks for pull requests of which the mirror has no issue side. Only upstream knows the id by which the lists of issues
 * show a pull request: no event of one tells it. It is asked at once, since those lists lack the pull request until then.
 */
async function marksForIssueSides(tx: Transaction, seen: readonly Seen[], askedAt: Date): Promise<Mark[]> {
  const pulls = seen.filter(({ kind, deleted }) => kind === "pull_request" && !deleted);
  if (pulls.length === 0) return [];
  const repositoryIds = pulls.map(({ repositoryId }) => repositoryId);
  const numbers = pulls.map(({ key }) => key);
  const rows = await tx.prepared<{ repositoryId: number; key: number }>(sql`
    select distinct x.r as "repositoryId", x.n as key
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(numbers, "integer")}) as x(r, n)
      where not exists (select from issues i where i.repository_id = x.r and i.number = x.n and i.id is not null)
      order by 1, 2`);
  const settledBy = answeredByAny(askedAt);
  return rows.map((row) => ({ kind: "issue", ...row, askedAt: settledBy, notBefore: askedAt, keys: LACKED_KEYS }));
}

/** Upstream's answer decides whether the repository is gone, so it is asked at once. */
function deletionMark(id: number, askedAt: Date): Mark {
  return { kind: "repository", repositoryId: 0, key: id, askedAt, notBefore: askedAt };
}

function askedSince(askedAt: Date, { kind, repositoryId, key, keys }: MarkKey & Pick<Mark, "keys">): Mark {
  return { kind, repositoryId, key, keys: keys ?? null, askedAt, notBefore: nextRound(askedAt, REPLICA_LAG_MS) };
}

const APPLIED_SECONDS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Counts deliveries that were settled just now, and how long after their receipt a read of the mirror shows them. */
function meterSettled(
  { metrics, clock }: Pick<Context, "metrics" | "clock">,
  taken: readonly Pick<Taken, "id" | "event" | "receivedAt">[],
  outcomes: ReadonlyMap<string, string | Error>,
): void {
  const settled = metrics.counter("tain_deliveries_settled_total", "Deliveries, by what came of them.", [
    "event",
    "outcome",
  ]);
  const seconds = metrics.histogram(
    "tain_delivery_duration_seconds",
    "From a delivery's receipt until the mirror shows it.",
    [],
    APPLIED_SECONDS,
  );
  const now = clock.now().getTime();
  for (const { id, event, receivedAt } of taken) {
    const outcome = outcomes.get(id);
    if (outcome === undefined) continue;
    const isApplied = outcome === "applied";
    // Anybody who holds a hook's secret can invent the name of an event. Only known events are applied.
    settled.inc({ event: isApplied ? event : "any", outcome: outcome instanceof Error ? "invalid" : outcome });
    const lagMs = now - receivedAt.getTime();
    if (isApplied) seconds.observe(lagMs / 1_000);
    noteSettled(metrics.activity, isApplied ? lagMs : null);
  }
}

/** @param lagMs null: nothing was to be applied */
function noteSettled(activity: Context["metrics"]["activity"], lagMs: number | null): void {
  activity.add(lagMs === null ? "ignored" : "applied", 1);
  // The clock may have been put back meanwhile.
  const lag = Math.max(0, lagMs ?? 0);
  activity.add("lagMs", lag);
  activity.add("slowestMs", lag);
}

/**
 * Adds the application to each delivery's own trace, with a link to the job that applied several deliveries together.
 */
function traceSettled(
  { tracing }: Pick<Context, "tracing">,
  taken: readonly Pick<Taken, "id" | "traceparent">[],
  outcomes: ReadonlyMap<string, string | Error>,
  startedAt: Date,
): void {
  const job = tracing.here();
  for (const { id, traceparent } of taken) {
    const outcome = outcomes.get(id);
    if (traceparent === null || outcome === undefined) continue;
    tracing.past("apply delivery", traceparent, {
      startedAt,
      attributes: { "tain.outcome": outcome instanceof Error ? "invalid" : outcome },
      links: job === null ? [] : [job],
    });
  }
}

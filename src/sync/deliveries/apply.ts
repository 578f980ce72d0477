import { arrayOf, runPrepared } from "../../../db/statement.ts";
import { together } from "../../../db/together.ts";
import type { Context } from "../../context.ts";
import {
  afterLag,
  lacksMergeability,
  type Mark,
  marksForMergeability,
  marksForTies,
  storeMarks,
} from "../../mirror/store/marks.ts";
import { mergeObserved, type Transaction } from "../../mirror/store/merge.ts";
import { FRESH_MS, type Stored } from "../../mirror/store/merge-rule.ts";
import {
  InvalidRepresentationError,
  joinObserved,
  type Observed,
  observe,
  type Sighting,
} from "../../mirror/store/observation.ts";
import type { Kind, ResourceKey } from "../../mirror/store/resource.ts";
import type { Fields, Json } from "../../mirror/store/template.ts";
import { type IssuePlace, storeTransfer } from "../../mirror/store/transfers.ts";
import { enqueueTask } from "../../queues/enqueue.ts";
import { QueueUnavailableError } from "../../queues/queues.ts";
import { noteInstallation } from "../following/installations.ts";
import { FOLLOWED, findMirrored, move } from "../following/state.ts";
import { enqueueMarks } from "../refresh/marks.ts";
import { observeCounts } from "./review-comment-counts.ts";

/** A delivery is signed by upstream and yet says something that cannot be. Trying again will not help. */
export class InvalidPayloadError extends Error {
  override name = "InvalidPayloadError";
}

/** What came of a delivery; "known": it was settled before, or is no longer there. */
export type Applied = "applied" | "ignored" | "known";

/** Payloads of one transaction, in bytes; parsed they take several times as much. A single one may be larger. */
const MAX_BATCH_BYTES = 8_000_000;

interface DeliveryRow {
  id: string;
  event: string;
  /** Null for what is too large to go along. */
  payload: string | null;
  /** As the receiver read it. */
  repository_id: string | null;
  /** Epoch milliseconds. */
  received_ms: number;
}

// The locks make a second worker with the same deliveries wait, and then find them settled. The receiver takes nothing that
// is not UTF-8; as text a payload is half as long on the way here.
const TAKE_OPEN = `with held as materialized
    (select id, event, payload, status, received_at, repository_id from deliveries where id = any(${arrayOf("$1", "uuid")}::uuid[]) order by id for update),
  sized as (select *, row_number() over going as place, sum(octet_length(payload)) over going as bytes
    from held where status in ('pending', 'failed') window going as (order by received_at, id))
  select id, event, repository_id, extract(epoch from received_at)::float8 * 1000 as received_ms,
    case when place = 1 or bytes <= ${MAX_BATCH_BYTES} then convert_from(payload, 'UTF8') end as payload
  from sized order by place`;

const MIRRORED_OF = `select repository_id from repository_syncs where state <> 'gone'
  and repository_id in (select repository_id from deliveries where id = any(${arrayOf("$1", "uuid")}::uuid[]))`;

/**
 * Applies deliveries of the inbox, in one transaction with their new status: done twice, they have one effect. What their
 * payloads show is merged at once, in the order of receipt. Those that are too large to go along are not in the answer; the
 * first always is. A payload that cannot be what its event says fails alone.
 * @throws whatever Postgres refuses; then none is applied
 */
export async function applyDeliveries(
  ctx: Context,
  deliveryIds: readonly string[],
): Promise<Map<string, Applied | InvalidPayloadError>> {
  const outcomes = new Map<string, Applied | InvalidPayloadError>();
  const { marks, selects } = await ctx.db.transaction(async (tx) => {
    const { open, mirrored } = await takeOpen(tx, deliveryIds);
    for (const id of deliveryIds) outcomes.set(id, "known");
    const taken = open.filter(({ payload }) => payload !== null);
    for (const { id, payload } of open) if (payload === null) outcomes.delete(id);
    const read = await readPayloads(ctx, tx, taken, mirrored, outcomes);
    const { seen, shapes } = joinObserved(read.flatMap((one) => one.observed));
    const observed = { seen: [...seen, ...(await observeCounts(tx, seen, ctx.clock.now()))], shapes };
    const [merged] = await together([mergeObserved(tx, observed), settle(ctx, tx, read)]);
    const askedAt = ctx.clock.now();
    const stored = new Map(merged.map((one) => [keyOf(one), one.stored]));
    const asked = read
      .flatMap(({ asks }) => asks)
      .filter((ask) => isOpen(stored.get(keyOf(ask)), ask))
      .map((ask) => askedSince(heardAt(stored, ask, askedAt), ask));
    const unknown = await marksForMergeability(tx, observed.seen, askedAt);
    const marks = [...marksForTies(merged, askedAt), ...asked, ...unknown];
    await storeMarks(tx, marks);
    for (const { transfer } of read) if (transfer) await storeTransfer(tx, transfer.from, transfer.to);
    for (const { deletedRepositoryId } of read) {
      if (deletedRepositoryId !== null)
        await move(tx, deletedRepositoryId, { from: FOLLOWED, to: "gone", problem: "upstream says it was deleted" });
    }
    for (const { id, ignored } of read) outcomes.set(id, ignored === null ? "applied" : "ignored");
    return { marks, selects: read.some(({ selects }) => selects) };
  });
  if (selects) await select(ctx);
  await enqueueMarks(ctx, marks);
  return outcomes;
}

function keyOf({ kind, repositoryId, key }: ResourceKey): string {
  return `${kind} ${repositoryId}/${key}`;
}

/**
 * Not once upstream has been seen at the moment of the event or after it: most events come more than once, by several
 * webhooks or sent again.
 */
function isOpen(stored: Stored | undefined, { of }: Ask): boolean {
  if (!stored || !of || !(of.field in stored.fields)) return true;
  const known = stored.keyStamps[of.field] ?? stored.stamp;
  // Payloads show it, too.
  const isSeen = known.read || of.field === "updated_at";
  return !(isSeen && known.updatedAt >= of.updatedAt);
}

/** `updated_at` has whole seconds: it may have changed so much later than what was seen with the same. */
const GRAIN_MS = 1_000;

/** When it was known to have happened, maybe by another webhook that told of it before: upstream's replicas lag behind that. */
function heardAt(stored: ReadonlyMap<string, Stored | undefined>, ask: Ask, now: Date): Date {
  const subject = stored.get(keyOf({ ...ask, kind: "pull_request" })) ?? stored.get(keyOf({ ...ask, kind: "issue" }));
  if (!ask.of || !subject || !(subject.stamp.updatedAt >= ask.of.updatedAt)) return now;
  return new Date(Math.min(now.getTime(), subject.stamp.seenAt + GRAIN_MS));
}

function askedSince(askedAt: Date, { kind, repositoryId, key }: ResourceKey): Mark {
  return { kind, repositoryId, key, askedAt, notBefore: afterLag(askedAt) };
}

/** Locks those that are not settled, and says which of the repositories that they name are mirrored. */
async function takeOpen(
  tx: Transaction,
  deliveryIds: readonly string[],
): Promise<{ open: DeliveryRow[]; mirrored: Set<number> }> {
  const [open, mirrored] = await together([
    runPrepared<DeliveryRow & Record<string, unknown>>(tx, TAKE_OPEN, [[...deliveryIds]]),
    runPrepared<{ repository_id: string }>(tx, MIRRORED_OF, [[...deliveryIds]]),
  ]);
  return { open, mirrored: new Set(mirrored.map((row) => Number(row.repository_id))) };
}

/** Asks for what is to be mirrored at once; the scheduler asks within a minute anyway. */
async function select(ctx: Context): Promise<void> {
  try {
    await enqueueTask(ctx, "select");
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
  }
}

/** A resource that changed in more than the payload shows. */
interface Ask extends ResourceKey {
  /** The field of which the payload tells no more than that it has changed, and `updated_at` since, in ms; absent: who knows. */
  of?: { field: "updated_at" | "closed_by" | "mergeable"; updatedAt: number };
}

/** What one delivery shows, and what it leaves open. */
interface Read {
  id: string;
  /** Why nothing is done; null when it is applied. */
  ignored: string | null;
  observed: Observed[];
  asks: Ask[];
  deletedRepositoryId: number | null;
  /** An issue that left for another repository. */
  transfer: { from: IssuePlace; to: IssuePlace } | null;
  /** It may have changed what is to be mirrored. */
  selects: boolean;
}

/** Those whose payload cannot be have their error in `outcomes`, and are left as they are. */
async function readPayloads(
  ctx: Context,
  tx: Transaction,
  taken: DeliveryRow[],
  named: ReadonlySet<number>,
  outcomes: Map<string, Applied | InvalidPayloadError>,
): Promise<Read[]> {
  if (taken.length === 0) return [];
  const parsed: { row: DeliveryRow; payload: Payload; repository: Fields | null }[] = [];
  for (const row of taken) {
    try {
      const payload = parsePayload(row.payload as string);
      parsed.push({ row, payload, repository: repositoryOf(payload) });
    } catch (error) {
      outcomes.set(row.id, asInvalid(row.event, error));
    }
  }
  // The receiver does not parse every payload, so it may have named another.
  const unnamed = parsed.flatMap(({ row, repository }) =>
    repository && repository.id !== Number(row.repository_id) ? [repository.id as number] : [],
  );
  const mirrored = unnamed.length === 0 ? named : named.union(await findMirrored(tx, unnamed));
  const read: Read[] = [];
  for (const { row, payload, repository } of parsed) {
    try {
      const isOfInstallation = row.event === "installation" || row.event === "installation_repositories";
      const shown = isOfInstallation
        ? await readInstallation(ctx, tx, row, payload)
        : readPayload(ctx, row, payload, repository, mirrored);
      read.push({ id: row.id, ...shown });
    } catch (error) {
      outcomes.set(row.id, asInvalid(row.event, error));
    }
  }
  return read;
}

/** Anything else than a payload that cannot be is a bug, and ends the batch. */
function asInvalid(event: string, error: unknown): InvalidPayloadError {
  if (error instanceof InvalidPayloadError) return error;
  if (error instanceof InvalidRepresentationError)
    return new InvalidPayloadError(`A ${event} event cannot be applied: ${error.message}`, { cause: error });
  throw error;
}

async function settle(ctx: Context, tx: Transaction, read: Read[]): Promise<void> {
  if (read.length === 0) return;
  await runPrepared(
    tx,
    `update deliveries d set status = case when x.reason is null then 'applied' else 'ignored' end, reason = x.reason,
        settled_at = $3, attempts = attempts + 1
      from unnest(${arrayOf("$1", "uuid")}, ${arrayOf("$2", "text")}) as x(id, reason) where d.id = x.id`,
    [read.map(({ id }) => id), read.map(({ ignored }) => ignored), ctx.clock.now()],
  );
}

type Payload = Fields & { action?: string };

function repositoryOf(payload: Payload): Fields | null {
  const { repository } = payload;
  return isObject(repository) && typeof repository.id === "number" && typeof repository.full_name === "string"
    ? repository
    : null;
}

function ignore(reason: string): Omit<Read, "id"> {
  return { ignored: reason, observed: [], asks: [], deletedRepositoryId: null, transfer: null, selects: false };
}

async function readInstallation(
  ctx: Context,
  tx: Transaction,
  { event, received_ms }: DeliveryRow,
  payload: Payload,
): Promise<Omit<Read, "id">> {
  if (ctx.config.appId === null) return ignore(`${event} is followed only by an App, and APP_ID is not set`);
  const problem = await noteInstallation(tx, payload, new Date(received_ms));
  return problem === null ? { ...ignore(""), ignored: null, selects: true } : ignore(problem);
}

function readPayload(
  ctx: Context,
  { event, received_ms }: DeliveryRow,
  payload: Payload,
  repository: Fields | null,
  mirrored: ReadonlySet<number>,
): Omit<Read, "id"> {
  const reading = readings[event];
  if (!reading) return ignore(`the mirror does not follow ${event} events`);
  if (!repository) return ignore("it concerns no repository");
  const repositoryId = repository.id as number;
  if (!mirrored.has(repositoryId)) return ignore("its repository is not mirrored");
  const at: Sighting = {
    api: ctx.config.upstreamUrl,
    repository: {
      id: repositoryId,
      fullName: repository.full_name as string,
      htmlUrl: typeof repository.html_url === "string" ? repository.html_url : null,
    },
    seenAt: new Date(received_ms),
    read: false,
    isLate: received_ms - happenedAt(payload) > FRESH_MS,
  };
  return {
    ignored: null,
    observed: [...observeAround(payload, at), ...reading.observe(payload, at)],
    // A repository and its former owner are known apart from what lies in it.
    asks: (reading.ask?.(payload) ?? []).map((key) => ({
      ...key,
      repositoryId: key.kind === "repository" ? 0 : repositoryId,
    })),
    deletedRepositoryId: event === "repository" && payload.action === "deleted" ? repositoryId : null,
    transfer: event === "issues" ? transferOf(payload, repositoryId) : null,
    selects: false,
  };
}

/** From where to where the issue went; null: nowhere, or the payload does not say so. Both repositories are told. */
function transferOf({ action, issue, changes }: Payload, repositoryId: number): Read["transfer"] {
  if (!isObject(changes)) return null;
  const { new_issue, new_repository, old_issue, old_repository } = changes;
  const to = action === "transferred" ? placeOf(new_issue, new_repository) : null;
  if (to) return { from: { repositoryId, number: numberOf(issue) }, to };
  const from = action === "opened" ? placeOf(old_issue, old_repository) : null;
  return from && { from, to: { repositoryId, number: numberOf(issue) } };
}

function placeOf(issue: Json | undefined, repository: Json | undefined): IssuePlace | null {
  if (!isObject(issue) || !isObject(repository) || typeof repository.id !== "number") return null;
  return { repositoryId: repository.id, number: numberOf(issue) };
}

const SUBJECTS = ["issue", "pull_request", "comment", "review", "milestone", "repository"];
const MOMENTS = ["created_at", "submitted_at", "updated_at", "pushed_at", "closed_at"];

/**
 * The newest moment that the payload shows, in ms: of most events the one at which they happened. Some move nothing (a comment
 * deleted), and seem to be older than they are.
 */
function happenedAt(payload: Payload): number {
  const moments = SUBJECTS.flatMap((subject) => {
    const value = payload[subject];
    return isObject(value) ? MOMENTS.map((moment) => Date.parse(String(value[moment]))) : [];
  });
  return Math.max(0, ...moments.filter((moment) => !Number.isNaN(moment)));
}

/** What every payload carries beside its subject. */
function observeAround(payload: Payload, at: Sighting): Observed[] {
  const observed = [
    observe(
      "repository",
      payload.repository as Json,
      payload.action === "deleted" && !hasSubject(payload) ? { ...at, deleted: true } : at,
    ),
  ];
  for (const key of ["sender", "assignee", "requested_reviewer"]) {
    const user = payload[key];
    if (isObject(user) && typeof user.type === "string") observed.push(observe("user", user, at));
  }
  return observed;
}

function hasSubject(payload: Payload): boolean {
  return ["issue", "pull_request", "label", "milestone", "comment", "review"].some((key) => isObject(payload[key]));
}

/** How one event is read: what it shows, and what it does not show though it has changed. */
interface Reading {
  observe: (payload: Payload, at: Sighting) => Observed[];
  ask?: (payload: Payload) => Omit<Ask, "repositoryId">[];
}

const readings: Record<string, Reading> = {
  issues: {
    observe: (payload, at) => {
      // A transferred issue is gone here; its new repository hears of it as opened.
      const isGone = payload.action === "deleted" || payload.action === "transferred";
      return [
        ...one("issue", payload.issue, at, isGone),
        ...optional("label", payload.label, at),
        ...optional("milestone", payload.milestone, at),
      ];
    },
    // Payloads have no `closed_by`, and some leave the state out. What was transferred here brings comments along, of which
    // no event tells.
    ask: (payload) => {
      const key = numberOf(payload.issue);
      const isPart =
        (payload.issue as Fields).state === undefined ||
        (isObject(payload.changes) && isObject(payload.changes.old_issue));
      if (isPart) return [{ kind: "issue", key }];
      return movesState(payload) ? [{ kind: "issue", key, of: fieldOf("closed_by", payload.issue) }] : [];
    },
  },
  pull_request: {
    observe: (payload, at) => [
      ...one("pull_request", payload.pull_request, at),
      ...optional("label", payload.label, at),
      ...optional("milestone", payload.milestone, at),
    ],
    ask: (payload) => {
      const key = numberOf(payload.pull_request);
      // The event shows one side of the pull request.
      const side = fieldOf(movesState(payload) ? "closed_by" : "updated_at", payload.pull_request);
      // Whether it can be merged is worked out later: where it says so, all such of a repository are asked about together. A new one
      // is read all the same, since of the repositories that it embeds the event shows less than a read does.
      const hasMoved = payload.action === "synchronize" || payload.action === "reopened";
      const isUnsettled =
        payload.action === "opened" || (hasMoved && !lacksMergeability(payload.pull_request as Fields));
      const pull = { kind: "pull_request" as const, key, of: fieldOf("mergeable", payload.pull_request) };
      return [{ kind: "issue" as const, key, of: side }, ...(isUnsettled ? [pull] : [])];
    },
  },
  issue_comment: {
    observe: (payload, at) => [
      ...one("issue", payload.issue, at),
      ...one("issue_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  pull_request_review: {
    observe: (payload, at) => [...one("pull_request", payload.pull_request, at), ...one("review", payload.review, at)],
    // That moves `updated_at` on both sides of the pull request, and the event shows one.
    ask: ({ action, pull_request: pull }) =>
      action === "dismissed" ? [{ kind: "issue", key: numberOf(pull), of: fieldOf("updated_at", pull) }] : [],
  },
  pull_request_review_comment: {
    observe: (payload, at) => [
      ...one("pull_request", payload.pull_request, at),
      ...one("review_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  label: { observe: (payload, at) => one("label", payload.label, at, payload.action === "deleted") },
  milestone: { observe: (payload, at) => one("milestone", payload.milestone, at, payload.action === "deleted") },
  repository: {
    observe: () => [],
    // Payloads leave out what a single repository shows, such as the organisation that it has left.
    ask: (payload) =>
      payload.action === "transferred"
        ? [{ kind: "repository", key: (payload.repository as Fields).id as number }]
        : [],
  },
  public: { observe: () => [] },
};

function movesState({ action }: Payload): boolean {
  return action === "closed" || action === "reopened";
}

function fieldOf(field: NonNullable<Ask["of"]>["field"], subject: Json | undefined): NonNullable<Ask["of"]> {
  return { field, updatedAt: isObject(subject) ? Date.parse(String(subject.updated_at)) : Number.NaN };
}

function one(kind: Kind, value: Json | undefined, at: Sighting, deleted = false): Observed[] {
  return [observe(kind, value ?? null, deleted ? { ...at, deleted } : at)];
}

function optional(kind: Kind, value: Json | undefined, at: Sighting): Observed[] {
  return isObject(value) && typeof value.id === "number" ? one(kind, value, at) : [];
}

function numberOf(value: Json | undefined): number {
  if (!isObject(value) || typeof value.number !== "number")
    throw new InvalidRepresentationError("its subject has no number");
  return value.number;
}

function parsePayload(text: string): Payload {
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch (error) {
    throw new InvalidPayloadError("The payload is not JSON", { cause: error });
  }
  if (!isObject(payload as Json)) throw new InvalidPayloadError("The payload is not a JSON object");
  return payload as Payload;
}

function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

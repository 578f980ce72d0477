import { sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import {
  InvalidRepresentationError,
  joinObserved,
  type Observed,
  observe,
  type Sighting,
} from "../mirror/observation.ts";
import type { Kind } from "../mirror/resource.ts";
import { mergeObserved, type Transaction } from "../mirror/store.ts";
import type { Fields, Json } from "../mirror/template.ts";
import { enqueueTask, QueueUnavailableError } from "../operations/queues.ts";
import { noteInstallation } from "./installations.ts";
import { afterLag, enqueueMarks, type Mark, marksForTies, storeMarks } from "./marks.ts";
import { isMirrored, setSyncState } from "./repository-sync.ts";

/** A delivery is signed by upstream and yet says something that cannot be. Trying again will not help. */
export class InvalidPayloadError extends Error {
  override name = "InvalidPayloadError";
}

interface DeliveryRow extends Record<string, unknown> {
  event: string;
  payload: Buffer;
  status: "pending" | "applied" | "ignored" | "failed";
  /** Epoch milliseconds. */
  received_ms: number;
}

/**
 * Applies one delivery of the inbox, in one transaction with its new status: done twice, it has one effect.
 * @throws InvalidPayloadError when the payload cannot be what its event says
 */
export async function applyDelivery(
  ctx: Context,
  { deliveryId }: { deliveryId: string },
): Promise<"applied" | "ignored" | "known"> {
  const applied = await ctx.db.transaction(async (tx) => {
    // The lock makes a second worker with the same delivery wait, and then find it settled.
    const { rows } = await tx.execute<DeliveryRow>(
      sql`select event, payload, status, extract(epoch from received_at)::float8 * 1000 as received_ms from deliveries where id = ${deliveryId} for update`,
    );
    const delivery = rows[0];
    if (!delivery || delivery.status === "applied" || delivery.status === "ignored") return null;
    const result = await applyPayload(
      ctx,
      tx,
      delivery.event,
      parsePayload(delivery.payload),
      new Date(delivery.received_ms),
    );
    const { status, reason } =
      result.ignored === null
        ? { status: "applied" as const, reason: null }
        : { status: "ignored" as const, reason: result.ignored };
    await tx.execute(sql`update deliveries set status = ${status}, reason = ${reason}, settled_at = ${ctx.clock.now().toISOString()}::timestamptz,
      attempts = attempts + 1 where id = ${deliveryId}`);
    return { status, marks: result.marks, selects: result.selects ?? false };
  });
  if (!applied) return "known";
  if (applied.selects) await select(ctx);
  await enqueueMarks(ctx, applied.marks);
  return applied.status;
}

/** Asks for what is to be mirrored at once; the scheduler asks within a minute anyway. */
async function select(ctx: Context): Promise<void> {
  try {
    await enqueueTask(ctx, "select");
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
  }
}

interface Result {
  /** Why nothing was done; null when it was applied. */
  ignored: string | null;
  marks: Mark[];
  /** It may have changed what is to be mirrored. */
  selects?: true;
}

type Payload = Fields & { action?: string };

async function applyPayload(
  ctx: Context,
  tx: Transaction,
  event: string,
  payload: Payload,
  receivedAt: Date,
): Promise<Result> {
  const ignore = (reason: string): Result => ({ ignored: reason, marks: [] });
  if (event === "installation" || event === "installation_repositories") {
    if (ctx.config.appId === null) return ignore("there is no APP_ID, so no installation is followed");
    const problem = await noteInstallation(tx, payload, receivedAt);
    return problem === null ? { ignored: null, marks: [], selects: true } : ignore(problem);
  }
  const reading = readings[event];
  if (!reading) return ignore(`the mirror does not follow ${event} events`);
  const repository = payload.repository;
  if (!isObject(repository) || typeof repository.id !== "number" || typeof repository.full_name !== "string") {
    return ignore("it concerns no repository");
  }
  if (!(await isMirrored(tx, repository.id))) return ignore("its repository is not mirrored");

  const at: Sighting = {
    api: ctx.config.upstreamUrl,
    repository: {
      id: repository.id,
      fullName: repository.full_name,
      htmlUrl: typeof repository.html_url === "string" ? repository.html_url : null,
    },
    seenAt: receivedAt,
    read: false,
  };
  try {
    const observed = joinObserved([...observeAround(payload, at), ...reading.observe(payload, at)]);
    const merged = await mergeObserved(tx, observed);
    const askedAt = ctx.clock.now();
    const asked = (reading.ask?.(payload) ?? []).map((key) => ({
      ...key,
      // A repository and its former owner are known apart from what lies in it.
      repositoryId: key.kind === "repository" ? 0 : (repository.id as number),
      askedAt,
      notBefore: afterLag(askedAt),
    }));
    const marks = [...marksForTies(merged, askedAt), ...asked];
    await storeMarks(tx, marks);
    if (event === "repository" && payload.action === "deleted")
      await setSyncState(tx, repository.id, "gone", "upstream says it was deleted");
    return { ignored: null, marks };
  } catch (error) {
    if (error instanceof InvalidRepresentationError)
      throw new InvalidPayloadError(`A ${event} event cannot be applied: ${error.message}`, { cause: error });
    throw error;
  }
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
  ask?: (payload: Payload) => { kind: Kind; key: number }[];
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
      const isPart =
        payload.action === "closed" ||
        payload.action === "reopened" ||
        (payload.issue as Fields).state === undefined ||
        (isObject(payload.changes) && isObject(payload.changes.old_issue));
      return isPart ? [{ kind: "issue", key: numberOf(payload.issue) }] : [];
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
      // The event shows one side of the pull request; and whether it can be merged is worked out later.
      const isUnsettled = ["opened", "synchronize", "reopened"].includes(payload.action ?? "");
      return [{ kind: "issue" as const, key }, ...(isUnsettled ? [{ kind: "pull_request" as const, key }] : [])];
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

function parsePayload(bytes: Buffer): Payload {
  let payload: unknown;
  try {
    payload = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new InvalidPayloadError("The payload is not JSON", { cause: error });
  }
  if (!isObject(payload as Json)) throw new InvalidPayloadError("The payload is not a JSON object");
  return payload as Payload;
}

function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

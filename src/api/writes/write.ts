import type { Transaction } from "../../../db/database.ts";
import { isPostgresConflict, isPostgresOutage } from "../../../db/outage.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { takeTurns } from "../../../db/turns.ts";
import { type Fields, type Json, objectOf } from "../../json.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { marksForMergeability, storeMarks } from "../../mirror/store/marks.ts";
import { findAllStored, mergeObserved } from "../../mirror/store/merge.ts";
import { type Stored, sameValue, writtenAt } from "../../mirror/store/merge-rule.ts";
import {
  InvalidRepresentationError,
  joinObserved,
  type Observed,
  observe,
  type Seen,
  type Sighting,
} from "../../mirror/store/observation.ts";
import type { RawAnswer, WriteRequest } from "../../upstream/protocol/upstream.ts";
import { repeated } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { beginRecord, type WriteRecord } from "../record/write-record.ts";
import { awaitShown, type FollowUpRead, type ReadBack, readNow } from "./read-back.ts";
import { OutcomeUnknownFault, requireFollowed, sendWrite, type Writer } from "./send-once.ts";

/**
 * One write of the service: the request to upstream, and the effects of its success.
 *
 * An answer shows the written resource, but not what changes with it (a comment raises its issue's count). Effects that
 * follow from the service's rules are implied. Where the rules do not tell all, upstream is read as well. A lagging
 * replica shows the state before the write. Then the implied effects stand, and a mark has upstream asked again once no
 * replica lags.
 */
export interface Write extends WriteRequest {
  /** The subject of the write. Upstream is asked about it if the outcome of the write is unknown. */
  about: ResourceKey[];
  /** Makes the body that is sent, and refuses one that names what the writer may not use. Absent: it is sent as it is. */
  checked?: (writer: Writer, body: string) => Promise<string>;
  /** Reads that follow a success, if the answer shows too little of it. */
  reads?: (answer: Json) => FollowUpRead[];
  /** What a success tells of resources. `find` looks up what was stored before. */
  says: (written: Written, find: Find, findAll: FindAll) => Promise<Sayings> | Sayings;
}

/** The success of a write. */
export interface Written {
  /** Upstream's answer. Null: it has no body. */
  answer: Json;
  at: Sighting;
  /** When the write was sent and when it was answered, by our clock. */
  between: readonly [sentAt: Date, answeredAt: Date];
  /**
   * Upstream's clock when it answered, as upstream writes a moment; null: upstream does not tell its time. The write
   * was done then, or a moment earlier. So a field stamped with this time is later than any webhook of an earlier
   * change. If that was a second too late, the mark's read overrules it.
   */
  doneBy: string | null;
  /** The reads that followed the write. */
  readBacks: readonly ReadBack[];
}

export type Find = (kind: Kind, key: number) => Promise<Stored | undefined>;
/** As many of one kind, in the order of their keys. */
export type FindAll = (kind: Kind, keys: readonly number[]) => Promise<(Stored | undefined)[]>;

export interface Sayings {
  /** Resources that the answer shows as they are now. */
  shown?: Observed[];
  gone?: ResourceKey[];
  implied?: Implied[];
}

/** A consequence of the write for a resource that its answer does not show. */
export interface Implied {
  kind: Kind;
  key: number;
  /** The changed fields, as they are stored. */
  fields: Fields;
  /** The resource's `updated_at` is this or later. Null: whether the write moved it is not known. */
  movedAt: string | null;
  /** Whether rules alone leave doubt. Upstream is asked again then. */
  isGuess?: true;
}

/**
 * The outcome of a write. `isStored`: the mirror shows what upstream did. Upstream may have done it even if not
 * (`answer`).
 */
export interface Performed {
  answer: RawAnswer;
  isStored: boolean;
}

export function isSuccess({ status }: Pick<RawAnswer, "status">): boolean {
  return status >= 200 && status <= 299;
}

/**
 * Sends the write, once, and stores what came of it. Upstream's refusal is an answer like any other.
 * @throws ApiFault when upstream gave no answer; it says what is known
 */
export async function perform(writer: Writer, write: Write): Promise<Performed> {
  const { method, path } = write;
  await requireFollowed(writer);
  const body = write.checked && write.body !== null ? await write.checked(writer, write.body) : write.body;
  const record = await beginRecord(writer, { method, route: writer.route, path, repositoryId: writer.repository.id });
  const sentAt = writer.ctx.clock.now();
  let answer: RawAnswer;
  try {
    answer = await sendWrite(writer, { method, path, body }, record);
  } catch (error) {
    if (error instanceof OutcomeUnknownFault) await markForRefresh(writer, write.about);
    throw error;
  }
  if (isSuccess(answer)) return { answer, isStored: await storeWrite(writer, write, { ...answer, sentAt, record }) };
  await record.end();
  // The mirror may still show a resource that upstream calls missing or moved.
  const isInDoubt = [301, 307, 404, 410].includes(answer.status);
  if (isInDoubt && (await writer.ctx.upstream.takeDoubtOfWrite(writer.caller)))
    await markForRefresh(writer, write.about);
  return { answer, isStored: false };
}

/** Stores what a write that took effect changed. False: that could not be done, which is logged. */
export async function storeWrite(
  writer: Writer,
  write: Pick<Write, "reads" | "says">,
  { headers, body, sentAt, record }: Pick<RawAnswer, "headers" | "body"> & { sentAt: Date; record: WriteRecord },
): Promise<boolean> {
  const { ctx, repository, requestId } = writer;
  const answeredAt = ctx.clock.now();
  const { id, fullName, htmlUrl } = repository;
  const seen = { api: ctx.config.upstreamUrl, repository: { id, fullName, htmlUrl }, read: true };
  const at: Sighting = { ...seen, seenAt: writtenAt(answeredAt) };
  const date = Date.parse(String(headers.date));
  const doneBy = Number.isNaN(date) ? null : new Date(date).toISOString().replace(".000Z", "Z");
  try {
    const answer: Json = body === "" ? null : JSON.parse(body);
    await requireOwn(ctx, repository, answer);
    const readBacks = await Promise.all(
      (write.reads?.(answer) ?? []).map((read) => (read.awaits ? awaitShown(writer, read) : readNow(writer, read))),
    );
    await storeAtLast(ctx, async (tx) => {
      // Two writes under one issue at once would both count from the same number.
      await takeTurns(tx, "write", [id]);
      const findAll: FindAll = async (kind, keys) => {
        const wanted = keys.map((key) => keyOf(id, kind, key));
        return wanted.map(await findAllStored(tx, wanted));
      };
      const find: Find = async (kind, key) => (await findAll(kind, [key]))[0];
      const written: Written = { answer, at, between: [sentAt, answeredAt], doneBy, readBacks };
      const sayings = await write.says(written, find, findAll);
      const before = await findAllStored(
        tx,
        (sayings.implied ?? []).map(({ kind, key }) => keyOf(id, kind, key)),
      );
      const { observed, doubts } = foldSayings(sayings, readBacks, at, before);
      const all = joinObserved([...observed, ...buried(sayings.gone ?? [], answeredAt)]);
      const merged = await mergeObserved(tx, all);
      const conflicts = merged.filter(({ outcome }) => outcome === "conflict");
      const unknown = await marksForMergeability(tx, all.seen, answeredAt);
      await storeMarks(tx, [...marksFor([...doubts, ...conflicts], answeredAt), ...unknown]);
      await record.store(tx);
    });
    return true;
  } catch (error) {
    // Upstream has done the write. A failure as answer would make the caller write twice.
    ctx.log.error(
      { err: error, requestId, repository: fullName },
      "A write took effect at upstream and could not be stored",
    );
    await record.end();
    return false;
  }
}

/**
 * The answer's own addresses may show a newer name of the repository, but not the name of another one.
 * @throws InvalidRepresentationError
 */
async function requireOwn(
  { db, config }: Writer["ctx"],
  { id, fullName }: Writer["repository"],
  answer: Json,
): Promise<void> {
  const { url, repository_url: repositoryUrl, pull_request_url: pullUrl } = objectOf(answer);
  const names = [url, repositoryUrl, pullUrl].flatMap((address) => {
    const path = typeof address === "string" && address.startsWith(`${config.upstreamUrl}/repos/`);
    return path ? [address.slice(`${config.upstreamUrl}/repos/`.length).split("/", 2).join("/").toLowerCase()] : [];
  });
  const others = names.filter((name) => name !== fullName.toLowerCase());
  if (others.length === 0) return;
  const taken = await db.count(sql`
    select from repositories r join repository_syncs s on s.repository_id = r.id
      where folded(r.full_name) = any(${others}::text[]) and r.id <> ${id} and r.deleted_at is null and ${MIRRORED} limit 1`);
  if (taken > 0)
    throw new InvalidRepresentationError(`Upstream answers a write to ${fullName} with something of ${others[0]}`);
}

/**
 * Runs a transaction again while Postgres is away or it loses against another's locks. The caller reads next, and would
 * otherwise find the state before the write. A process that stops waits for this, too.
 */
async function storeAtLast(
  { db, random, log }: Writer["ctx"],
  store: (tx: Transaction) => Promise<void>,
): Promise<void> {
  await repeated(() => db.transaction(store), {
    policy: RETRIES.writeStored,
    random,
    isPassing: (error) => isPostgresOutage(error) || isPostgresConflict(error),
    onWait: (err, waitMs) => log.warn({ err, waitMs }, "The effects of a write could not be stored yet"),
  });
}

function keyOf(repositoryId: number, kind: Kind, key: number): ResourceKey {
  return { kind, repositoryId: kind === "repository" || kind === "user" ? 0 : repositoryId, key };
}

/**
 * A read that shows the implied change also tells its exact time. A read without the change comes from a lagging
 * replica.
 */
function foldSayings(
  { shown = [], implied = [] }: Sayings,
  readBacks: ReadBack[],
  at: Sighting,
  before: (one: ResourceKey) => Stored | undefined,
): { observed: Observed[]; doubts: ResourceKey[] } {
  const repositoryId = at.repository?.id ?? 0;
  const observed = [...shown];
  const doubts: ResourceKey[] = [];
  const confirmed = new Set<ReadBack>();
  for (const one of implied) {
    const key = keyOf(repositoryId, one.kind, one.key);
    const stored = before(key);
    const readBack = readBacks.find(({ kind, key: number }) => kind === one.kind && number === one.key);
    const read = readBack?.body ? mainOf(readBack, observeReadBack(readBack, at)) : {};
    const isConfirmed = shows(read, one, stored);
    if (readBack && isConfirmed && isFromAfter(read, one, stored)) confirmed.add(readBack);
    if ((readBack && !isConfirmed) || one.isGuess) doubts.push(key);
    if (!stored || stored.deletedAt !== null) continue;
    const exact = isConfirmed && one.movedAt !== null ? { ...one, movedAt: String(read.updated_at) } : one;
    observed.push({ seen: seenAs(exact, key, stored, at), shapes: new Map() });
  }
  for (const readBack of readBacks) {
    // A read that only an upstream with the write can show counts as seen with the answer. Otherwise an earlier
    // write in the same second would win.
    const seenAt = confirmed.has(readBack) || readBack.showsWrite ? at.seenAt : readBack.seenAt;
    if (readBack.body) observed.push(observeReadBack({ ...readBack, seenAt }, at));
  }
  return { observed, doubts };
}

function observeReadBack({ kind, body, seenAt, isCallers }: ReadBack, at: Sighting): Observed {
  const bodies = Array.isArray(body) ? body : [body];
  // A resource that is hidden from a caller's token is not gone.
  const isSingle = !isCallers && (kind === "issue" || kind === "pull_request");
  return joinObserved(bodies.map((one) => observe(kind, one, { ...at, seenAt, isSingle })));
}

function mainOf({ kind, key }: ReadBack, { seen }: Observed): Fields {
  return seen.find((one) => one.kind === kind && one.key === key && one.extent !== "partial")?.fields ?? {};
}

/**
 * Whether the read shows the implied fields, and is not older than the stored row. An older read could show the
 * same fields from before another change.
 */
function shows(read: Fields, { fields, movedAt }: Implied, stored: Stored | undefined): boolean {
  const since = movedAt ?? stored?.fields.updated_at ?? "";
  return (
    String(read.updated_at ?? "") >= String(since) &&
    Object.entries(fields).every(([key, value]) => sameValue(read[key], value))
  );
}

/**
 * Whether the read, which shows the implied fields, shows anything that was not there before the write. A write that
 * changes nothing is shown by a lagging replica too, beside what an earlier write has changed since.
 */
function isFromAfter(read: Fields, { fields }: Implied, stored: Stored | undefined): boolean {
  return (
    !stored ||
    String(read.updated_at ?? "") > String(stored.fields.updated_at ?? "") ||
    Object.entries(fields).some(([key, value]) => !sameValue(stored.fields[key], value))
  );
}

/** What is seen of the implied change. No stamp may be older than the stored ones, which are from before the write. */
function seenAs({ fields, movedAt }: Implied, key: ResourceKey, stored: Stored, at: Sighting): Seen[] {
  const known = [stored.stamp, ...Object.keys(fields).flatMap((name) => stored.keyStamps[name] ?? [])];
  const moved = movedAt === null ? 0 : Date.parse(movedAt);
  const stamp = { seenAt: at.seenAt.getTime(), read: true };
  const updatedAt = Math.max(moved, ...known.map((time) => time.updatedAt));
  const part: Seen = { ...key, deleted: false, fields, extent: "partial", stamp: { ...stamp, updatedAt } };
  if (movedAt === null) return [part];
  const updated_at = movedAt;
  return [{ ...part, fields: { updated_at }, extent: "whole", stamp: { ...stamp, updatedAt: moved } }, part];
}

function buried(gone: ResourceKey[], at: Date): Observed[] {
  const stamp = { updatedAt: 0, seenAt: at.getTime(), read: true };
  const seen = gone.map((key): Seen => ({ ...key, fields: {}, deleted: true, extent: "whole", stamp }));
  return [{ seen, shapes: new Map() }];
}

/** The marks to read these again, late enough that no replica lags and that the read wins over what is stored. */
function marksFor(keys: ResourceKey[], answeredAt: Date) {
  const askedAt = writtenAt(answeredAt);
  const notBefore = new Date(writtenAt(askedAt).getTime() + 1_000);
  return keys.map(({ kind, repositoryId, key }) => ({ kind, repositoryId, key, askedAt, notBefore }));
}

/** Marks these resources, so that upstream is asked about them once no replica can lag. */
export async function markForRefresh({ ctx, requestId }: Writer, about: ResourceKey[]): Promise<void> {
  try {
    await storeMarks(ctx.db, marksFor(about, ctx.clock.now()));
  } catch (error) {
    ctx.log.error({ err: error, requestId }, "A mark for the effects of a write could not be stored");
  }
}

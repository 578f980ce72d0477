import { Readable } from "node:stream";
import { levelOf } from "../../failure.ts";
import type { Json } from "../../json.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { leaveThreads } from "../../mirror/store/lists.ts";
import { nextRound, repositoryMark, storeMarks } from "../../mirror/store/marks.ts";
import { findAllStored } from "../../mirror/store/merge.ts";
import type { Stored } from "../../mirror/store/merge-rule.ts";
import { sameValue } from "../../mirror/store/merge-rule.ts";
import { observe } from "../../mirror/store/observation.ts";
import { endDoubt, type RefName, storeDoubt } from "../../mirror/store/refs.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import type { Opened } from "../../upstream/protocol/opened.ts";
import type { ForwardOwn } from "../callers/permissions.ts";
import { beginRecord, type RecordedWrite, type WriteRecord } from "../record/write-record.ts";
import type { FollowUpRead } from "../writes/read-back.ts";
import type { Writer } from "../writes/send-once.ts";
import { isSuccess, markForRefresh, storeWrite, type Write } from "../writes/write.ts";
import { collected } from "./cache/body.ts";

/** Forwarded writes: sent once, recorded, and what they touched read again before the answer leaves. */

/** A resource that a write may have changed, and its path at upstream; null: it is only asked about later. */
export interface Thing extends ResourceKey {
  path: string | null;
}

export interface Touched {
  repository: Writer["repository"];
  things: readonly Thing[];
  /** What a success proves without a read. */
  says?: Write["says"];
  /** The pull requests whose review threads the write may change. */
  threadsOf?: readonly number[];
  /** The branches and tags that the write may make, move or delete. */
  refs?: readonly RefName[];
  /** The kind of resource that the answer to a success shows. */
  shows?: Kind;
}

/** Finds out from the answer what a write touched. @param answer null: it is no JSON, or too long to be read */
type Learn = (answer: Json) => readonly Touched[] | Promise<readonly Touched[]>;

/** How many resources are read while the caller waits. Further ones are asked about later. */
const MOST_READ = 20;

/**
 * How a write is forwarded.
 * @param touched the resources that the request itself names
 */
export async function writeForwarder(
  writer: Pick<Writer, "ctx" | "caller" | "requestId">,
  recorded: RecordedWrite,
  send: ForwardOwn,
  { touched, learn: told = null }: { touched: readonly Touched[]; learn?: Learn | null },
): Promise<ForwardOwn> {
  const { ctx } = writer;
  const before = await storedOf(ctx, touched);
  const record = await beginRecord(writer, recorded);
  const isPaid = paidOnce(writer);
  const writerAt = ({ repository }: Touched): Writer => ({
    ...writer,
    route: recorded.route ?? recorded.path,
    repository,
  });
  const learn = told ?? (touched.some(({ shows }) => shows !== undefined) ? learnShown(touched) : null);
  return async (request) => {
    const sentAt = ctx.clock.now();
    let isSent = false;
    try {
      await doubtRefs(writer, touched, { at: sentAt, isPaid });
      isSent = true;
      const answered = await send(request);
      record.heard(answered);
      if (!isSuccess(answered)) {
        await trustRefs(writer, touched, sentAt);
        return answered;
      }
      const { opened, answer } = learn ? await hold(answered) : { opened: answered, answer: null };
      let all = touched;
      try {
        if (learn) all = await learn(answer);
        await Promise.all(
          withFewReads(all).map((one) =>
            fetchAndStoreTouched(writerAt(one), one, { before, opened, sentAt, record, isPaid }),
          ),
        );
      } catch (error) {
        // Upstream has done the write. If the answer were a failure, the caller would write twice.
        const { requestId } = writer;
        ctx.log.error({ err: error, requestId }, "The changes of a forwarded write could not be read");
        for (const one of all) await mark(writerAt(one), one, isPaid);
      }
      return opened;
    } catch (error) {
      if (!isSent) record.unsent();
      if (!(error instanceof UpstreamUnavailableError)) throw error;
      if (error.outage === "unreachable") {
        await trustRefs(writer, touched, sentAt);
        record.unsent();
      }
      // It is unknown whether upstream did the write.
      else for (const one of touched) await mark(writerAt(one), one, isPaid);
      throw error;
    } finally {
      await record.end();
    }
  };
}

/** Whether the caller's share has room for the mirror's later reads because of this write. */
type IsPaid = () => Promise<boolean>;

/** Takes one read out of the caller's share for the whole write, at the first need to ask. */
function paidOnce({ ctx, caller }: Pick<Writer, "ctx" | "caller">): IsPaid {
  let taken: Promise<boolean> | null = null;
  return async () => {
    try {
      taken ??= ctx.upstream.takeDoubtOfWrite(caller);
      return await taken;
    } catch (error) {
      taken = null;
      throw error;
    }
  };
}

/**
 * Puts the branches and tags that the write may move in doubt: callers are forwarded for them until a push or a read
 * settles them. The doubt is stored before the write is sent, so that even an early push ends it.
 */
async function doubtRefs(
  { ctx }: Pick<Writer, "ctx">,
  touched: readonly Touched[],
  { at, isPaid }: { at: Date; isPaid: IsPaid },
): Promise<void> {
  for (const { repository, refs = [] } of touched)
    if (refs.length > 0 && (await isPaid())) await ctx.db.transaction((tx) => storeDoubt(tx, repository.id, refs, at));
}

/** Ends the doubt, since upstream did nothing. If that cannot be noted, reads of these refs stay forwarded. */
async function trustRefs(
  { ctx, requestId }: Pick<Writer, "ctx" | "requestId">,
  touched: readonly Touched[],
  at: Date,
): Promise<void> {
  try {
    for (const { repository, refs = [] } of touched)
      if (refs.length > 0) await ctx.db.transaction((tx) => endDoubt(tx, repository.id, refs, at));
  } catch (error) {
    ctx.log[levelOf(error, "warn")]({ err: error, requestId }, "Refs stay in doubt after a write that changed none");
  }
}

/** Takes the written resource from the answer. */
function learnShown(touched: readonly Touched[]): Learn {
  return (answer) => {
    const says =
      (kind: Kind): Write["says"] =>
      ({ at }) => ({ shown: [observe(kind, answer, at)] });
    return touched.map((one) => (one.shows ? { ...one, says: says(one.shows) } : one));
  };
}

/** The same resources, at most MOST_READ of them with a path, so that the caller does not wait for more. */
function withFewReads(touched: readonly Touched[]): Touched[] {
  let left = MOST_READ;
  return touched.map((one) => ({
    ...one,
    things: one.things.map((thing) => {
      if (thing.path === null || left === 0) return { ...thing, path: null };
      left -= 1;
      return thing;
    }),
  }));
}

/**
 * Reads the touched resources with the caller's own token, as after a write of ours. Marks them for another read when
 * no replica can lag.
 */
async function fetchAndStoreTouched(
  writer: Writer,
  touched: Touched,
  {
    before,
    opened,
    sentAt,
    record,
    isPaid,
  }: { before: Before; opened: Opened; sentAt: Date; record: WriteRecord; isPaid: IsPaid },
): Promise<void> {
  const { things, says } = touched;
  const reads = things.flatMap((thing) => followUpReads(writer, thing, before(thing)));
  const { date } = opened.headers;
  const headers = date === undefined ? {} : { date };
  await storeWrite(writer, { reads: () => reads, says: says ?? (() => ({})) }, { headers, body: "", sentAt, record });
  await mark(writer, touched, isPaid);
}

/** The mirror's later reads come out of the caller's share, since a caller could repeat most such writes at will. */
async function mark(writer: Writer, { things, threadsOf = [] }: Touched, isPaid: IsPaid): Promise<void> {
  const single = things.filter(({ key }) => key !== 0);
  if (single.length + threadsOf.length === 0) return;
  const isAsked = await isPaid();
  if (threadsOf.length > 0) await leaveToUpstream(writer, threadsOf, { isAsked });
  if (single.length > 0 && isAsked) await markForRefresh(writer, single);
}

/** Has callers forwarded for these threads until they are read. */
async function leaveToUpstream(
  { ctx, requestId, repository: { id } }: Writer,
  numbers: readonly number[],
  { isAsked }: { isAsked: boolean },
): Promise<void> {
  const now = ctx.clock.now();
  const pulls = numbers.map((number) => ({ repositoryId: id, number }));
  try {
    await ctx.db.transaction(async (tx) => {
      await leaveThreads(tx, pulls, now);
      if (isAsked) await storeMarks(tx, [{ ...repositoryMark("lists", id, now), notBefore: nextRound(now, 0) }]);
    });
  } catch (error) {
    ctx.log.error({ err: error, requestId }, "Review threads could not be left to upstream after a write");
  }
}

function followUpReads(writer: Writer, { kind, key, path }: Thing, before: Stored | undefined): FollowUpRead[] {
  if (path === null) return [];
  // In a list it is unknown which row should have changed.
  if (key === 0) return [{ kind, key, path }];
  const { id, fullName, htmlUrl } = writer.repository;
  const at = {
    api: writer.ctx.config.upstreamUrl,
    repository: { id, fullName, htmlUrl },
    seenAt: new Date(0),
    read: true,
  };
  const awaits: FollowUpRead["awaits"] = (body) => {
    const fields = observe(kind, body, at).seen.find((one) => one.kind === kind && one.key === key)?.fields ?? {};
    return (
      before === undefined || Object.entries(before.fields).some(([name, was]) => !isKeyUnchanged(fields, name, was))
    );
  };
  return [{ kind, key, path, awaits, mayShowNothing: true }];
}

/**
 * Keys whose change proves nothing: upstream computes them, they depend on the reader, or they follow a rename of the
 * repository.
 */
const NO_SIGN =
  /^(mergeable|rebaseable|mergeable_state|merge_commit_sha|author_association|_links|pull_request|.*url)$/;

/** Whether a key is unchanged. A key that the caller is not shown counts as unchanged. */
function isKeyUnchanged(fields: Stored["fields"], name: string, was: Stored["fields"][string] | undefined): boolean {
  return !(name in fields) || NO_SIGN.test(name) || sameValue(fields[name], was);
}

/** A touched resource as the mirror had it before the write. */
type Before = (one: ResourceKey) => Stored | undefined;

async function storedOf({ db }: Writer["ctx"], touched: readonly Touched[]): Promise<Before> {
  const read = touched.flatMap(({ things }) => things.filter(({ key, path }) => key !== 0 && path !== null));
  return read.length === 0 ? () => undefined : db.transaction((tx) => findAllStored(tx, read));
}

/** The longest answer to a write that is held, to see what the write changed. A longer one is forwarded unread. */
const MOST_HELD = 1024 * 1024;

/**
 * Reads the answer, and makes its body readable once more. `answer` is null if the body is no JSON, or too long.
 * @throws as `collected`
 */
async function hold(answered: Opened): Promise<{ opened: Opened; answer: Json }> {
  const held = await collected(answered.body, MOST_HELD, { of: "A write" });
  const body = Readable.from("whole" in held ? [held.whole] : held.pieces);
  body.once("close", () => answered.body.destroy());
  return { opened: { ...answered, body }, answer: "whole" in held ? jsonOrNull(held.whole) : null };
}

function jsonOrNull(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

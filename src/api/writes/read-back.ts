import { levelOf } from "../../failure.ts";
import type { Json } from "../../json.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import type { Writer } from "./send-once.ts";

/** A read of upstream after a write. */
export interface FollowUpRead {
  kind: Kind;
  /** The resource's key; 0 for a list. */
  key: number;
  path: string;
  /** Whether the body shows the write. If given, the path is read until the body does, or until no replica can lag. */
  awaits?: (body: Json) => boolean;
  /** Whether the write may have changed nothing. Then it is read for a shorter time. */
  mayShowNothing?: true;
}

/** What a read found. `body` is null if upstream shows nothing. */
export interface ReadBack extends Pick<FollowUpRead, "kind" | "key"> {
  body: Json;
  seenAt: Date;
  /** Whether a caller's own token read it. Upstream may show less to that than to the mirror. */
  isCallers: boolean;
  /** Whether the read was awaited, and shows the write. */
  showsWrite?: true;
}

type Reader = Pick<Writer, "ctx" | "caller">;

/** Reads once. A failed read does not fail the write: what was implied stands, and upstream is asked again later. */
export async function readNow(reader: Reader, read: FollowUpRead): Promise<ReadBack> {
  return (await tryRead(reader, read)) ?? nothingRead(reader, read);
}

/**
 * Reads until upstream shows what was just made there, or fails, or its replicas cannot lag any more. A process that
 * stops waits no longer. The caller may have gone: the write has to be stored all the same.
 */
export async function awaitShown(reader: Reader, read: FollowUpRead): Promise<ReadBack> {
  const { random, stopping } = reader.ctx;
  const policy = read.mayShowNothing ? RETRIES.forwardedWriteShown : RETRIES.writeShown;
  const waits = new Waits({ policy, random, signal: stopping });
  for (;;) {
    const reading = await tryRead(reader, read);
    if (reading === null) return nothingRead(reader, read);
    const isShown = reading.body !== null && (read.awaits?.(reading.body) ?? true);
    if (isShown) return { ...reading, ...(read.awaits ? { showsWrite: true } : {}) };
    if (!(await waits.nextUnlessAborted())) return reading;
  }
}

/** Reads once. Null: upstream could not be asked. */
async function tryRead(reader: Reader, read: FollowUpRead): Promise<ReadBack | null> {
  const { upstream, log } = reader.ctx;
  try {
    const answer = await upstream.getWritten(reader.caller, read.path);
    return answer.kind === "ok"
      ? { ...nothingRead(reader, read), body: answer.body, seenAt: answer.seenAt }
      : nothingRead(reader, read);
  } catch (error) {
    log[levelOf(error, "warn")]({ err: error, path: read.path }, "The effects of a write could not be read");
    return null;
  }
}

function nothingRead({ ctx: { clock }, caller }: Reader, { kind, key }: FollowUpRead): ReadBack {
  const isCallers = caller.kind === "user" && caller.by.of === "upstream";
  return { kind, key, body: null, seenAt: clock.now(), isCallers };
}

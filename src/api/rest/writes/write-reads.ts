import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "../../../json.ts";
import { REPLICA_LAG_MS } from "../../../mirror/store/merge-rule.ts";
import type { Kind } from "../../../mirror/store/resource.ts";
import { type Backoff, waitAfterMs } from "../../../operations/backoff.ts";
import type { ApiContext } from "../../call.ts";

/** What is read from upstream after a write. */
export interface Read {
  kind: Kind;
  /** 0 for a list. */
  key: number;
  path: string;
  /** It is part of the write: it is read until it shows the write, or until no replica can lag any longer. */
  awaits?: (body: Json) => boolean;
}

/** `body` is null where upstream shows nothing. */
export interface Reading extends Pick<Read, "kind" | "key"> {
  body: Json;
  seenAt: Date;
}

type ReadContext = Pick<ApiContext, "upstream" | "clock" | "random" | "log">;

/** Reads once. A failed read does not fail the write: what was implied stands, and upstream is asked again later. */
export async function readNow(ctx: ReadContext, read: Read): Promise<Reading> {
  return (await tryRead(ctx, read)) ?? nothing(ctx, read);
}

const UNTIL_SHOWN: Backoff = { firstMs: 200, longestMs: 4_000 };

/** Reads until upstream shows what was just made there, or fails. */
export async function awaitShown(ctx: ReadContext, read: Read): Promise<Reading> {
  for (let attempt = 1, waitedMs = 0; ; attempt++) {
    const reading = await tryRead(ctx, read);
    if (reading === null) return nothing(ctx, read);
    const isShown = reading.body !== null && (read.awaits?.(reading.body) ?? true);
    const waitMs = waitAfterMs(attempt, UNTIL_SHOWN, ctx.random);
    waitedMs += waitMs;
    if (isShown || waitedMs > REPLICA_LAG_MS) return reading;
    await sleep(waitMs);
  }
}

/** Null: upstream could not be asked. */
async function tryRead({ upstream, clock, log }: ReadContext, { kind, key, path }: Read): Promise<Reading | null> {
  try {
    const answer = await upstream.get(path, { priority: "caller" });
    return answer.kind === "ok"
      ? { kind, key, body: answer.body, seenAt: answer.seenAt }
      : { kind, key, body: null, seenAt: clock.now() };
  } catch (error) {
    log.warn({ err: error, path }, "What a write changed could not be read");
    return null;
  }
}

function nothing({ clock }: ReadContext, { kind, key }: Read): Reading {
  return { kind, key, body: null, seenAt: clock.now() };
}

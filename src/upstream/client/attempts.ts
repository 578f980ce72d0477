import type { Stores } from "../../stores.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { CredentialUnusableError, UpstreamUnavailableError } from "../protocol/errors.ts";
import { type Attempt, type ExchangeContext, exchange, type UpstreamRequest } from "./exchange.ts";
import type { Gate } from "./gate.ts";

export interface AttemptContext extends ExchangeContext, Pick<Stores, "random"> {
  gate: Gate;
  /** The wait before the first repetition, on average. */
  repeatAfterMs: number;
}

/** Asks once, as for a write. */
export async function askOnce(ctx: AttemptContext, ask: UpstreamRequest): Promise<Attempt> {
  using _place = ask.isWithin ? null : await ctx.gate.enter(ask.demand.priority, ask.demand.signal);
  return await exchange(ctx, ask);
}

/** Sends a request that may be repeated, and repeats it after a passing failure, twice at most. */
export async function askRepeatedly(ctx: AttemptContext, ask: UpstreamRequest): Promise<Attempt> {
  const { random, repeatAfterMs } = ctx;
  const { bucket, signal } = ask.demand;
  const waits = new Waits({ policy: { ...RETRIES.upstreamRead, firstMs: repeatAfterMs }, random, signal });
  for (;;) {
    try {
      const made = await askAny(ctx, ask);
      if (!isPassing(made.received.status, bucket) || !(await waits.next())) return made;
    } catch (error) {
      const isInterrupted = error instanceof UpstreamUnavailableError && error.outage === "interrupted";
      if (!isInterrupted || !(await waits.next())) throw error;
    }
  }
}

/** A refused credential gives way to another one. If none is left, the lease says when one may be used again. */
async function askAny(ctx: AttemptContext, ask: UpstreamRequest): Promise<Attempt> {
  for (let refusals = 1; ; refusals++) {
    const made = await askOnce(ctx, ask).catch((error: unknown) => {
      if (error instanceof CredentialUnusableError) return { refusal: error };
      throw error;
    });
    if ("received" in made && made.refusal === null) return made;
    if (refusals > ctx.keyring.size) throw made.refusal;
  }
}

/** Whether the same request may soon be answered. A GraphQL query that ran out of time would do so again. */
function isPassing(status: number, bucket: string): boolean {
  return status === 503 || ((status === 502 || status === 504) && bucket !== "graphql");
}

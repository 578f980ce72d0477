import type { Dispatcher } from "undici";
import type { Context } from "../context.ts";
import { codeOf, isBug } from "../failure.ts";
import { guardedLookup, type Resolve, requireAdmitted, TargetRefusedError } from "./address-guard.ts";
import { PayloadRoom } from "./payload.ts";
import type { TargetRequest } from "./request.ts";
import { SendSlots } from "./send-slots.ts";

/** GitHub gives a target ten seconds, from the connect to the answer. */
const TIMEOUT_MS = 10_000;
const TARGET_CONNECT_MS = 5_000;
/** How much of an answer is kept, to show it to the target's owner. */
const KEPT_BYTES = 4_096;
/** A longer answer is cut off, and its connection closed. */
const MOST_ANSWER_BYTES = 65_536;
const MOST_HEADER_BYTES = 16_384;

/** The outcome of one request. */
export interface SendOutcome {
  /** "OK", or what went wrong, in the service's words. */
  status: string;
  /** 502: the target could not be reached; 504: it took too long. */
  statusCode: number;
  /** Why the target could not be reached, in words for its owner; null: it answered. */
  reason: string | null;
  headers: Record<string, string>;
  /** The beginning of the answer's body; null: there was none. */
  body: string | null;
  /** How long the target wants to be left alone, in ms from now; null: it does not say. */
  retryAfterMs: number | null;
}

/**
 * The one rule whether a target has accepted a request; `sent.ts` has it in SQL. Redirects are not followed, so they
 * are refusals.
 */
export function isAccepted({ statusCode, reason }: Pick<SendOutcome, "statusCode" | "reason">): boolean {
  return reason === null && statusCode >= 200 && statusCode < 300;
}

/** Sends requests to targets. Each connection is checked by its address; redirects are not followed. */
export class TargetClient {
  readonly #ctx: Pick<Context, "config" | "clock">;
  readonly #resolve: Resolve | undefined;
  /** Null: nothing was sent yet. */
  #opened: Promise<Agents> | null = null;
  /** Room for the payloads that this process is sending. */
  readonly room = new PayloadRoom();
  /** Slots for the requests of this process without a noted outcome. */
  readonly slots = new SendSlots();

  constructor(ctx: Pick<Context, "config" | "clock">, resolve?: Resolve) {
    this.#ctx = ctx;
    this.#resolve = resolve;
  }

  /** Never throws because of a target's behaviour. @throws a mistake of ours, which must not pass for an outage of it */
  async post(to: { url: string; insecureSsl: boolean }, { headers, body }: TargetRequest): Promise<SendOutcome> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      requireAdmitted(this.#ctx.config.targetsAllowed, to.url);
      const { origin, pathname, search } = new URL(to.url);
      this.#opened ??= openAgents(this.#ctx.config, this.#resolve);
      const { checked, unchecked } = await this.#opened;
      const agent = to.insecureSsl ? unchecked : checked;
      const answer = await agent.request({ origin, path: pathname + search, method: "POST", headers, body, signal });
      return await this.#heard(answer);
    } catch (error) {
      if (!(error instanceof Error) || isBug(error)) throw error;
      return failedOutcome(error);
    }
  }

  async close(): Promise<void> {
    const agents = await this.#opened;
    await Promise.all([agents?.checked.destroy(), agents?.unchecked.destroy()]);
  }

  async #heard({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<SendOutcome> {
    return {
      status: isAccepted({ statusCode, reason: null }) ? "OK" : `Invalid HTTP Response: ${statusCode}`,
      statusCode,
      reason: null,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")])),
      body: await beginningOf(body),
      retryAfterMs: waitOf(headers["retry-after"], this.#ctx.clock.now()),
    };
  }
}

/** One for targets whose certificate is checked, one for the others. */
type Agents = Record<"checked" | "unchecked", Dispatcher>;

/**
 * Loaded with the first request, as in `src/upstream/protocol/transport.ts`: most processes send targets nothing. Behind a
 * proxy, it looks up names and judges where they lead. Bare addresses are judged here as well.
 */
async function openAgents(
  { targetsAllowed, targetsProxy }: Pick<Context["config"], "targetsAllowed" | "targetsProxy">,
  resolve: Resolve | undefined,
): Promise<Agents> {
  const { Agent, ProxyAgent } = await import("undici");
  const lookup = guardedLookup(targetsAllowed, resolve);
  const limits = {
    allowH2: false,
    pipelining: 1,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    maxHeaderSize: MOST_HEADER_BYTES,
  } as const;
  const timeout = TARGET_CONNECT_MS;
  const open = (rejectUnauthorized: boolean) =>
    targetsProxy === null
      ? new Agent({ connect: { lookup, timeout, rejectUnauthorized }, ...limits })
      : new ProxyAgent({
          uri: targetsProxy,
          // A tunnel for http, too: then the proxy sees no payload, and a target no header of the proxy's.
          proxyTunnel: true,
          requestTls: { timeout, rejectUnauthorized },
          proxyTls: { timeout },
          ...limits,
        });
  return { checked: open(true), unchecked: open(false) };
}

/** The status decides the outcome, so a body that breaks off changes nothing. */
async function beginningOf(body: Dispatcher.ResponseData["body"]): Promise<string | null> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of body) {
      const bytes = Buffer.from(part);
      if (length < KEPT_BYTES) parts.push(bytes.subarray(0, KEPT_BYTES - length));
      length += bytes.length;
      if (length > MOST_ANSWER_BYTES) break;
    }
  } catch {
    // The part before the break is kept.
  }
  return length === 0 ? null : Buffer.concat(parts).toString("utf8");
}

/** How long a `Retry-After` asks to wait: seconds, of which some services give parts, or a date. Pure. */
export function waitOf(header: string | string[] | undefined, now: Date): number | null {
  const [text = ""] = [header].flat();
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now.getTime());
}

function failedOutcome(error: Error): SendOutcome {
  const nothing = { headers: {}, body: null, retryAfterMs: null };
  const cause = error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof TargetRefusedError ? cause.message : `${cause.name}: ${cause.message}`;
  const isLate = error.name === "TimeoutError" || /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/.test(codeOf(error) ?? "");
  if (isLate) return { ...nothing, status: "timed out", statusCode: 504, reason: "it did not answer within 10 s" };
  return { ...nothing, status: "failed to connect to host", statusCode: 502, reason };
}

import type { Context } from "../../context.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import { isRead } from "../../http/reply.ts";
import type { Json } from "../../json.ts";
import { Outage } from "../../operations/outage.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import type { Opened } from "../../upstream/protocol/opened.ts";
import { Transport, type TransportLimits } from "../../upstream/protocol/transport.ts";
import { RETRIES } from "../../waits/retries.ts";
import { ApiFault } from "../dialect/fault.ts";
import { forwardedBody } from "../forward/cache/body.ts";

/** The header that marks what an edge sends. A request that leads back to an edge would go round for ever. */
const FROM_EDGE = "x-tain-edge";
/** How recent an answer must be to prove that the centre is there. */
const CENTRE_HEARD_MS = 1_000;
const PROBE: TransportLimits = {
  connections: 1,
  connectTimeoutMs: 2_000,
  headersTimeoutMs: 2_000,
  bodyTimeoutMs: 2_000,
  totalTimeoutMs: 2_000,
  maxBodyBytes: 64 * 1024,
};
const PASSED_ON: TransportLimits = {
  connections: 64,
  connectTimeoutMs: 2_000,
  // A write may stand in line at the centre.
  headersTimeoutMs: 60_000,
  // Streams of changes may be silent for long.
  bodyTimeoutMs: 0,
  totalTimeoutMs: 15 * 60_000,
  maxBodyBytes: -1,
};

/** Headers that belong to one connection (RFC 9110, 7.6.1), or are made anew for the next. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The centre cannot be reached, so nothing was done there. */
export class CentreAwayError extends Error {
  override name = "CentreAwayError";
}

/** The centre as an edge reaches it: by the API of its web processes. */
export class Centre {
  readonly #ctx: Pick<Context, "log" | "tracing">;
  readonly #address: string;
  readonly #outage: Outage;
  #probes: Transport;
  #requests: Transport;
  #probing: Promise<void> | null = null;
  #heardAt = Number.NEGATIVE_INFINITY;
  #awaySince: number | null = null;

  constructor(ctx: Pick<Context, "log" | "tracing">, address: string) {
    this.#ctx = ctx;
    this.#address = address;
    this.#outage = new Outage(ctx.log, "warn", {
      begins: "The centre cannot be reached: reads are answered as of what the replica has, writes are refused",
      ends: "The centre can be reached again",
    });
    this.#probes = new Transport(address, PROBE, ctx.tracing);
    this.#requests = new Transport(address, PASSED_ON, ctx.tracing);
  }

  /**
   * The centre's answer, as it arrives. Unless the centre was just heard, it is first asked whether it is there: a
   * write must not get lost on its way without a word.
   * @throws CentreAwayError: nothing was sent; ApiFault: the centre did not answer, and may have done what was asked
   */
  async answer(exchange: Exchange, body: Buffer | null): Promise<Reply> {
    if (exchange.headers[FROM_EDGE] !== undefined)
      throw new ApiFault(508, "Loop Detected: EDGE_OF leads to an edge, and not to the centre");
    await this.reach();
    const { method, requestTarget, gone } = exchange;
    const headers = headersFor(exchange);
    try {
      const asked = { method, path: requestTarget, headers, body, ...(isRead(method) && { signal: gone }) };
      const opened = await this.#requests.open(asked);
      this.#heard();
      return this.#reply(method, opened);
    } catch (error) {
      if (!(error instanceof UpstreamUnavailableError)) throw error;
      this.#lost(error);
      if (error.outage === "unreachable" || isRead(method)) throw new CentreAwayError(error.message, { cause: error });
      throw new ApiFault(
        error.outage === "timed-out" ? 504 : 502,
        "The centre, to which this was passed on, gave no answer. Whether it did what was asked is not known; it is not sent again.",
        { cause: error },
      );
    }
  }

  /** A small JSON document of the centre's. @throws CentreAwayError */
  async get(path: string, headers: Record<string, string>): Promise<Json> {
    await this.reach();
    return await this.#ask(path, headers);
  }

  /** Makes sure that the centre is there. @throws CentreAwayError unless it was just heard, or answers now */
  async reach(): Promise<void> {
    const now = performance.now();
    if (now - this.#heardAt < CENTRE_HEARD_MS) return;
    if (this.#awaySince !== null && now - this.#awaySince < RETRIES.centre.firstMs)
      throw new CentreAwayError("It was away just now");
    this.#probing ??= this.#ask("/-/live").then(
      () => {
        this.#probing = null;
      },
      (error: unknown) => {
        this.#probing = null;
        throw error;
      },
    );
    await this.#probing;
  }

  async close(): Promise<void> {
    await Promise.all([this.#probes.close(1_000), this.#requests.close(1_000)]);
  }

  async #ask(path: string, headers: Record<string, string> = {}): Promise<Json> {
    try {
      const { status, text } = await this.#probes.send({
        method: "GET",
        path,
        headers: { ...headers, [FROM_EDGE]: "1" },
      });
      if (status !== 200) throw new UpstreamUnavailableError(`GET ${path}: the centre answers ${status}`, "failed");
      this.#heard();
      return JSON.parse(text);
    } catch (error) {
      if (!(error instanceof UpstreamUnavailableError) && !(error instanceof SyntaxError)) throw error;
      this.#lost(error);
      throw new CentreAwayError(error.message, { cause: error });
    }
  }

  #heard(): void {
    this.#heardAt = performance.now();
    this.#awaySince = null;
    this.#outage.met();
  }

  #lost(error: Error): void {
    this.#heardAt = Number.NEGATIVE_INFINITY;
    this.#awaySince = performance.now();
    this.#outage.missed(error);
    // Connections that a cut has left open would swallow the next requests. Requests under way on them get no answer
    // any more.
    const lost = [this.#probes, this.#requests];
    this.#probes = new Transport(this.#address, PROBE, this.#ctx.tracing);
    this.#requests = new Transport(this.#address, PASSED_ON, this.#ctx.tracing);
    for (const one of lost) void one.close(0);
  }

  #reply(method: string, { status, headers, body }: Opened): Reply {
    const kept: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(headers)) {
      // CORS headers are made anew for each reply.
      if (value !== undefined && !OF_CONNECTION.has(name) && !name.startsWith("access-control-")) kept[name] = value;
    }
    if (method === "HEAD" || status === 204 || status === 304) {
      body.resume();
      return { status, headers: kept, body: null };
    }
    return { status, headers: kept, body: null, stream: forwardedBody(body, body, this.#ctx.log) };
  }
}

function headersFor(exchange: Exchange): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(exchange.headers))
    if (value !== undefined && !OF_CONNECTION.has(name)) headers[name] = [value].flat().join(", ");
  return {
    ...headers,
    [FROM_EDGE]: "1",
    // The centre believes these addresses if it trusts the edge as a proxy.
    "x-forwarded-for": [exchange.headers["x-forwarded-for"] ?? [], exchange.peer].flat().join(", "),
    "x-forwarded-host": exchange.host,
    "x-forwarded-proto": exchange.protocol,
  };
}

import type { Stores } from "../../stores.ts";
import { graphqlPath } from "../protocol/address.ts";
import { readAnswer } from "../protocol/answer.ts";
import { UpstreamUnavailableError } from "../protocol/errors.ts";
import type { Conditional, Opened } from "../protocol/opened.ts";
import {
  OWN_HEADERS,
  type Received,
  Transport,
  type TransportLimits,
  type TransportRequest,
} from "../protocol/transport.ts";
import type { RawAnswer, ReadAnswer, WriteRequest } from "../protocol/upstream.ts";
import { UpstreamMeter } from "./metering.ts";
import { Places } from "./places.ts";
import { rawAnswer, writeRequest } from "./write.ts";

const CLIENT_LIMITS = {
  connections: 32,
  connectTimeoutMs: 5_000,
  headersTimeoutMs: 15_000,
  bodyTimeoutMs: 15_000,
  totalTimeoutMs: 30_000,
  maxBodyBytes: 16 * 1024 * 1024,
};

/** Each forwarded answer holds a connection until its caller has read it, and callers may ask for any number. */
const FORWARDED_AT_ONCE = { inAll: 32, perName: 8 };
/** A large archive takes minutes on a slow line. */
const LONGEST_FORWARD_MS = 15 * 60_000;
/** How long a request waits for its place. */
const PLACE_PATIENCE_MS = 30_000;
/**
 * Questions about callers' identity have their own connections, so that they and forwarded requests never wait for each
 * other.
 */
const IDENTIFIED_AT_ONCE = 16;

interface OwnRequest extends Pick<TransportRequest, "method" | "path" | "isAbsolute" | "body"> {
  /** A caller's own token for upstream. It is sent only to UPSTREAM_URL, and is not kept. */
  token: string;
  headers?: Record<string, string>;
}

/** A request whose answer is forwarded. `signal`: its caller has gone. */
interface ForwardedRequest extends OwnRequest {
  signal?: AbortSignal;
  conditional?: Conditional;
}
export type Forward = (request: ForwardedRequest) => Promise<Opened>;

interface OwnQuery {
  token: string;
  query: string;
  variables: object;
}

/** A client with connections of its own. */
class OwnClient {
  readonly #transport: Transport;
  readonly #upstreamUrl: string;
  readonly #meter: UpstreamMeter;

  constructor({ config: { upstreamUrl }, metrics, tracing }: OwnContext, limits: TransportLimits) {
    this.#upstreamUrl = upstreamUrl;
    this.#transport = new Transport(upstreamUrl, limits, tracing);
    this.#meter = new UpstreamMeter(metrics);
  }

  async send({ token, headers, body = null, ...request }: OwnRequest): Promise<Received> {
    const asked = { ...request, body, headers: { ...bearing(token), ...headers } };
    return await this.#metered(request.path, () => this.#transport.send(asked));
  }

  async graphql({ token, query, variables }: OwnQuery): Promise<Received> {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ query, variables });
    return await this.send({
      token,
      method: "POST",
      path: graphqlPath(this.#upstreamUrl),
      isAbsolute: true,
      headers,
      body,
    });
  }

  /** The answer, as soon as it begins. */
  async open({ token, headers, body = null, conditional, ...request }: ForwardedRequest): Promise<Opened> {
    const sent: Record<string, string> = { ...bearing(token), ...headers };
    const asked = { ...request, body, headers: { ...sent, ...conditional?.(sent) } };
    return await this.#metered(request.path, () => this.#transport.open(asked));
  }

  close(): Promise<void> {
    return this.#transport.close(1_000);
  }

  async #metered<One extends { status: number }>(path: string, ask: () => Promise<One>): Promise<One> {
    const startedAt = performance.now();
    const answer = await ask();
    const bucket = path === graphqlPath(this.#upstreamUrl) ? "graphql" : "core";
    this.#meter.answered({ path, bucket, class: "own" }, answer.status, startedAt);
    return answer;
  }
}

function bearing(token: string): Record<string, string> {
  return { ...OWN_HEADERS, authorization: `Bearer ${token}` };
}

interface OwnContext extends Pick<Stores, "clock" | "metrics" | "tracing"> {
  config: { upstreamUrl: string };
}

/** Asks upstream with callers' own tokens. They pay with their own quota, so none of the mirror's is leased. */
export class UpstreamAsCaller {
  /** Asks who a caller is and what they see, with connections of its own. Throws as `forward` does. */
  readonly identity: Pick<OwnClient, "send" | "graphql">;
  readonly #ctx: OwnContext;
  readonly #identifying: OwnClient;
  readonly #asking: OwnClient;
  readonly #forwarding: OwnClient;
  readonly #places = new Places(FORWARDED_AT_ONCE);

  constructor(ctx: OwnContext) {
    this.#ctx = ctx;
    this.#asking = new OwnClient(ctx, CLIENT_LIMITS);
    this.#identifying = new OwnClient(ctx, { ...CLIENT_LIMITS, connections: IDENTIFIED_AT_ONCE });
    this.#forwarding = new OwnClient(ctx, {
      ...CLIENT_LIMITS,
      connections: FORWARDED_AT_ONCE.inAll,
      totalTimeoutMs: LONGEST_FORWARD_MS,
      maxBodyBytes: -1,
    });
    this.identity = this.#identifying;
  }

  /**
   * Sends one forwarded request once. Such requests have their own places, so they delay nothing else. Answers whatever
   * upstream says, as it arrives. The place is free again once the body is read or destroyed.
   * @throws UpstreamUnavailableError when no answer begins; the signal's reason
   */
  async forward(request: ForwardedRequest): Promise<Opened> {
    const place = await entered(this.#places, request.token, request.signal);
    try {
      const opened = await this.#forwarding.open(request);
      opened.body.once("close", () => place[Symbol.dispose]());
      return opened;
    } catch (error) {
      place[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Reads one page as `Upstream.get` does, and asks once. The page has no validator, since it is for this token alone.
   * @throws CredentialRejectedError, UpstreamUnavailableError, UpstreamRefusedError
   */
  async get(token: string, path: string): Promise<ReadAnswer> {
    const base = this.#ctx.config.upstreamUrl;
    const seenAt = this.#ctx.clock.now();
    const received = await this.#asking.send({ token, method: "GET", path });
    const asked = { base, path, key: path, accept: undefined, credential: "", madeFor: null, seenAt };
    const answer = readAnswer({ ...asked, validator: undefined }, received);
    return answer.kind === "ok" ? { ...answer, validator: null } : answer;
  }

  /** Sends a write once and never again, as `Upstream.write` does. */
  async write(token: string, write: WriteRequest): Promise<RawAnswer> {
    const seenAt = this.#ctx.clock.now();
    return rawAnswer(await this.#asking.send({ token, ...writeRequest(write) }), seenAt);
  }

  async graphql(query: OwnQuery): Promise<Received> {
    return await this.#asking.graphql(query);
  }

  async close(): Promise<void> {
    await Promise.all([this.#asking, this.#forwarding, this.#identifying].map((each) => each.close()));
  }
}

async function entered(places: Places, token: string, signal: AbortSignal | undefined): Promise<Disposable> {
  const late = AbortSignal.timeout(PLACE_PATIENCE_MS);
  try {
    return await places.enter(token, signal ? AbortSignal.any([signal, late]) : late);
  } catch (error) {
    if (!late.aborted || signal?.aborted) throw error;
    throw new UpstreamUnavailableError("Too many forwarded requests are under way", "unreachable", { cause: error });
  }
}

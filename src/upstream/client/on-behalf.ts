import type { Stores } from "../../stores.ts";
import { graphqlPath } from "./address.ts";
import { readAnswer } from "./answer.ts";
import { UpstreamUnavailableError } from "./errors.ts";
import { UpstreamMeter } from "./metering.ts";
import type { Conditional, Opened } from "./opened.ts";
import { Places } from "./places.ts";
import { OWN_HEADERS, type Received, Transport, type TransportRequest } from "./transport.ts";
import type { Answer, RawAnswer, WriteRequest } from "./upstream.ts";
import { rawAnswer, writeRequest } from "./write.ts";

const LIMITS = {
  connections: 32,
  connectTimeoutMs: 5_000,
  headersTimeoutMs: 15_000,
  bodyTimeoutMs: 15_000,
  totalTimeoutMs: 30_000,
  maxBodyBytes: 16 * 1024 * 1024,
};

/** Each holds a connection for as long as its reader reads, and callers may ask for as many as they like. */
const FORWARDED_AT_ONCE = { inAll: 32, perName: 8 };
/** A large archive takes minutes on a slow line. */
const LONGEST_FORWARD_MS = 15 * 60_000;
/** How long a request waits for its place. */
const PATIENCE_MS = 30_000;
/** Questions about who callers are never wait for their writes, nor these for them. */
const IDENTIFIED_AT_ONCE = 16;

interface OwnRequest extends Pick<TransportRequest, "method" | "path" | "isAbsolute" | "body"> {
  /** A token of upstream's that a caller showed. It goes to UPSTREAM_URL and nowhere else, and is not kept. */
  token: string;
  headers?: Record<string, string>;
}

type Send = (request: OwnRequest) => Promise<Received>;
/** `signal`: whoever waits for the answer has gone. */
export type Forward = (request: OwnRequest & { signal?: AbortSignal; conditional?: Conditional }) => Promise<Opened>;
type SendGraphql = (request: { token: string; query: string; variables: object }) => Promise<Received>;

/** Asks upstream with callers' own tokens: what it costs is theirs, so nothing of the mirror's quota is leased. */
export interface OnBehalf {
  /** Asks who a caller is and what they see, in a line of its own. Throws as `forward` does. */
  identity: { send: Send; graphql: SendGraphql };
  /**
   * One request, sent once, that is only passed on: in a line of their own, such requests hold up nothing else. Answers
   * whatever upstream says, as it arrives. Its place is free again once the body is read or destroyed.
   * @throws UpstreamUnavailableError when no answer begins; the signal's reason
   */
  forward: Forward;
  /**
   * One page, read as `Upstream.get` reads it, and asked for once. It has no validator: it is what this token is shown.
   * @throws CredentialRejectedError, UpstreamUnavailableError, UpstreamRefusedError
   */
  get(token: string, path: string): Promise<Answer>;
  /** Sends a write once and never again, as `Upstream.write` does. */
  write(token: string, request: WriteRequest): Promise<RawAnswer>;
  graphql: SendGraphql;
  close(): Promise<void>;
}

export function openOnBehalf({
  config: { upstreamUrl },
  clock,
  metrics,
  tracing,
}: Pick<Stores, "clock" | "metrics" | "tracing"> & { config: { upstreamUrl: string } }): OnBehalf {
  const meter = new UpstreamMeter(metrics);
  const metered = async <One extends { status: number }>(path: string, ask: () => Promise<One>): Promise<One> => {
    const startedAt = performance.now();
    const answer = await ask();
    const bucket = path === graphqlPath(upstreamUrl) ? "graphql" : "core";
    meter.answered({ path, bucket, class: "own" }, answer.status, startedAt);
    return answer;
  };
  const transport = new Transport(upstreamUrl, LIMITS, tracing);
  const forwardLimits = {
    ...LIMITS,
    connections: FORWARDED_AT_ONCE.inAll,
    totalTimeoutMs: LONGEST_FORWARD_MS,
    maxBodyBytes: -1,
  };
  const forwarding = new Transport(upstreamUrl, forwardLimits, tracing);
  const places = new Places(FORWARDED_AT_ONCE);
  const identifying = new Transport(upstreamUrl, { ...LIMITS, connections: IDENTIFIED_AT_ONCE }, tracing);
  const common = (token: string) => ({ ...OWN_HEADERS, authorization: `Bearer ${token}` });
  const sendBy =
    (by: Transport): Send =>
    ({ token, method, path, headers = {}, body = null }) =>
      metered(path, () => by.send({ method, path, body, headers: { ...common(token), ...headers } }));
  const graphqlBy =
    (by: Transport): SendGraphql =>
    ({ token, query, variables }) => {
      const path = graphqlPath(upstreamUrl);
      const headers = { ...common(token), "content-type": "application/json" };
      const body = JSON.stringify({ query, variables });
      return metered(path, () => by.send({ method: "POST", path, isAbsolute: true, headers, body }));
    };
  return {
    identity: { send: sendBy(identifying), graphql: graphqlBy(identifying) },
    forward: async ({ token, method, path, isAbsolute = false, headers, body, signal, conditional }) => {
      const place = await entered(places, token, signal);
      try {
        const sent: Record<string, string> = { ...common(token), ...headers };
        const all = { ...sent, ...conditional?.(sent) };
        const asked = { method, path, isAbsolute, body: body ?? null, headers: all, signal };
        const opened = await metered(path, () => forwarding.open(asked));
        opened.body.once("close", () => place[Symbol.dispose]());
        return opened;
      } catch (error) {
        place[Symbol.dispose]();
        throw error;
      }
    },
    get: async (token, path) => {
      const seenAt = clock.now();
      const received = await sendBy(transport)({ token, method: "GET", path, body: null });
      const asked = { base: upstreamUrl, path, key: path, accept: undefined, credential: "", madeFor: null, seenAt };
      const answer = readAnswer({ ...asked, validator: undefined }, received);
      return answer.kind === "ok" ? { ...answer, validator: null } : answer;
    },
    write: async (token, write) => {
      const seenAt = clock.now();
      const { headers, ...request } = writeRequest(write);
      const sent = { ...request, headers: { ...common(token), ...headers } };
      return rawAnswer(await metered(request.path, () => transport.send(sent)), seenAt);
    },
    graphql: graphqlBy(transport),
    close: async () => {
      await Promise.all([transport, forwarding, identifying].map((each) => each.close(1_000)));
    },
  };
}

async function entered(places: Places, token: string, signal: AbortSignal | undefined): Promise<Disposable> {
  const late = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await places.enter(token, signal ? AbortSignal.any([signal, late]) : late);
  } catch (error) {
    if (!late.aborted || signal?.aborted) throw error;
    throw new UpstreamUnavailableError("Too many forwarded requests are under way", "unreachable", { cause: error });
  }
}

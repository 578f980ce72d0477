import type { Stores } from "../../stores.ts";
import { graphqlPath } from "./address.ts";
import { readAnswer } from "./answer.ts";
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

/** Each may hold `maxBodyBytes`, and callers may ask for as many as they like. */
const FORWARDED_AT_ONCE = 8;

export interface OwnRequest extends Pick<TransportRequest, "method" | "path" | "body"> {
  /** A token of upstream's that a caller showed. It goes to UPSTREAM_URL and nowhere else, and is not kept. */
  token: string;
  headers?: Record<string, string>;
}

/** Asks upstream with callers' own tokens: what it costs is theirs, so nothing of the mirror's quota is leased. */
export interface OnBehalf {
  /**
   * One request, sent once. Answers whatever upstream says.
   * @throws UpstreamUnavailableError when no complete answer arrives
   */
  send(request: OwnRequest): Promise<Received>;
  /** Like `send`, for requests that are only passed on: in a line of their own, they hold up nothing else. */
  forward(request: OwnRequest): Promise<Received>;
  /**
   * One page, read as `Upstream.get` reads it, and asked for once. It has no validator: it is what this token is shown.
   * @throws CredentialRejectedError, UpstreamUnavailableError, UpstreamRefusedError
   */
  get(token: string, path: string): Promise<Answer>;
  /** Sends a write once and never again, as `Upstream.write` does. */
  write(token: string, request: WriteRequest): Promise<RawAnswer>;
  graphql(request: { token: string; query: string; variables: object }): Promise<Received>;
  close(): Promise<void>;
}

export function openOnBehalf({
  config: { upstreamUrl },
  clock,
}: Pick<Stores, "clock"> & { config: { upstreamUrl: string } }): OnBehalf {
  const transport = new Transport(upstreamUrl, LIMITS);
  const forwarding = new Transport(upstreamUrl, { ...LIMITS, connections: FORWARDED_AT_ONCE });
  const common = (token: string) => ({ ...OWN_HEADERS, authorization: `Bearer ${token}` });
  const sendBy =
    (by: Transport): OnBehalf["send"] =>
    ({ token, method, path, headers = {}, body = null }) =>
      by.send({ method, path, body, headers: { ...common(token), ...headers } });
  return {
    send: sendBy(transport),
    forward: sendBy(forwarding),
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
      return rawAnswer(await transport.send({ ...request, headers: { ...common(token), ...headers } }), seenAt);
    },
    graphql: ({ token, query, variables }) =>
      transport.send({
        method: "POST",
        path: graphqlPath(upstreamUrl),
        isAbsolute: true,
        headers: { ...common(token), "content-type": "application/json" },
        body: JSON.stringify({ query, variables }),
      }),
    close: async () => {
      await Promise.all([transport.close(1_000), forwarding.close(1_000)]);
    },
  };
}

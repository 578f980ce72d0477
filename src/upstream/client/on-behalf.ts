import { version } from "../../operations/version.ts";
import type { Stores } from "../../stores.ts";
import { graphqlPath } from "./address.ts";
import { endToEnd } from "./answer.ts";
import { type Received, Transport } from "./transport.ts";
import type { RawAnswer, WriteRequest } from "./upstream.ts";

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

export interface OwnRequest {
  /** A token of upstream's that a caller showed. It goes to UPSTREAM_URL and nowhere else, and is not kept. */
  token: string;
  method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  path: string;
  headers?: Record<string, string>;
  body?: string | null;
}

/** Asks upstream with callers' own tokens: what it costs is theirs, so nothing of the mirror's quota is leased. */
export interface OnBehalf {
  /**
   * One request, sent once. Answers whatever upstream says.
   * @throws UpstreamUnavailableError when no complete answer arrives
   */
  send(request: OwnRequest): Promise<Received>;
  /** As `send`, for what is only passed on: it waits in a line of its own, and so holds nothing else up. */
  forward(request: OwnRequest): Promise<Received>;
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
  const common = (token: string) => ({
    "user-agent": `tain/${version}`,
    accept: "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
    authorization: `Bearer ${token}`,
  });
  const sendBy =
    (by: Transport): OnBehalf["send"] =>
    ({ token, method, path, headers = {}, body = null }) =>
      by.send({ method, path, body, headers: { ...common(token), ...headers } });
  return {
    send: sendBy(transport),
    forward: sendBy(forwarding),
    write: async (token, { method, path, body, contentType = "application/json", accept, apiVersion }) => {
      const seenAt = clock.now();
      const headers: Record<string, string> = body === null ? {} : { "content-type": contentType };
      if (accept !== undefined) headers.accept = accept;
      if (apiVersion !== undefined) headers["x-github-api-version"] = apiVersion;
      const received = await transport.send({ method, path, body, headers: { ...common(token), ...headers } });
      return { status: received.status, headers: endToEnd(received.headers), body: received.text, seenAt };
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

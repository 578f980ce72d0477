import { createHmac } from "node:crypto";
import examples from "@octokit/webhooks-examples" with { type: "json" };
import { type BenchDatabase, benchRedis } from "./databases.ts";
import { postRequest } from "./load.ts";
import { type ServerProcess, startServer } from "./processes.ts";

export const SECRET = "bench-webhook-secret";
/** Where each delivery's own number stands in its GUID. */
const NUMBER = "000000000000";
const GUID = `5f3a9c01-0000-4000-8000-${NUMBER}`;
/** Those of upstream's events whose payloads are of the usual size together: the median has some 24 KB. */
const EVENTS = ["pull_request", "pull_request_review", "pull_request_review_comment", "issue_comment"];

const payloads = (examples as unknown as { name: string; examples: object[] }[]).flatMap(
  ({ name: event, examples: some }) =>
    EVENTS.includes(event) ? some.map((payload) => ({ event, body: Buffer.from(JSON.stringify(payload)) })) : [],
);

/** Signed deliveries of upstream's own example payloads to this server, and how each gets a GUID of its own. */
export function signedDeliveries(
  { url }: ServerProcess,
  headers: Record<string, string> = {},
): { requests: Uint8Array[]; numberAt: string; status: number } {
  const requests = payloads.map(({ event, body }) =>
    postRequest(url, "/webhooks", body, {
      "Content-Type": "application/json",
      "X-GitHub-Event": event,
      "X-GitHub-Delivery": GUID,
      "X-GitHub-Hook-ID": "1",
      "X-Hub-Signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
      ...headers,
    }),
  );
  return { requests, numberAt: NUMBER, status: 202 };
}

export const PAYLOAD_BYTES = {
  median: payloads.map(({ body }) => body.length).sort((a, b) => a - b)[Math.floor(payloads.length / 2)] as number,
};

/** The web process, over an empty mirror. */
export function startReceiver(
  database: BenchDatabase,
  settings: Record<string, string> = {},
  flags: readonly string[] = [],
): Promise<ServerProcess> {
  const redis = benchRedis();
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: "http://127.0.0.1:9",
    UPSTREAM_TOKEN: "bench-token",
    WEBHOOK_SECRET: SECRET,
    LOG_LEVEL: "error",
    HOST: "127.0.0.1",
    PORT: "0",
    ...settings,
  };
  return startServer("web-server.ts", env, flags);
}

/** A server of `bench/reference` that takes the same deliveries. */
export function startReference(file: string, env: Record<string, string> = {}): Promise<ServerProcess> {
  return startServer(`reference/${file}`, { WEBHOOK_SECRET: SECRET, ...env });
}

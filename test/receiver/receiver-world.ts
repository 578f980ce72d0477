import { sign } from "@octokit/webhooks-methods";
import { sql } from "../../db/sql.ts";
import type { Config } from "../../src/config.ts";
import { parseConfig } from "../../src/config.ts";
import { type Context, openContext } from "../../src/context.ts";
import { openWeb } from "../../src/web.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";

export const SECRET = "first-webhook-secret";
export const OLDER_SECRET = "older-webhook-secret";

/** Nothing listens there, so connecting is refused at once. */
export const NOWHERE = { databaseUrl: "postgres://tain:tain@127.0.0.1:1/tain", redisUrl: "redis://127.0.0.1:1" };

export interface ReceiverWorld extends AsyncDisposable {
  url: string;
  stores: Context;
  /** Signs and sends; the answer's body is parsed. */
  deliver(options?: Sending): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }>;
  inbox(): Promise<InboxRow[]>;
}

export interface Sending {
  event?: string;
  guid?: string;
  hookId?: number;
  payload?: unknown;
  /** Instead of the JSON of `payload`. */
  body?: string | Uint8Array;
  secret?: string;
  /** Of the address, with its question mark. */
  query?: string;
  /** Added to, or with null taken from, what upstream sends. */
  headers?: Record<string, string | null>;
}

interface InboxRow {
  id: string;
  guid: string;
  hook_id: string;
  event: string;
  action: string | null;
  repository_id: string | null;
  payload: Buffer;
  status: string;
  reason: string | null;
  settled_at: Date | null;
}

/** A receiver on a free port over a real Postgres and Redis, or over those of `stores`. */
export async function openReceiverWorld(
  stores: Partial<typeof NOWHERE> & { env?: NodeJS.ProcessEnv } = {},
): Promise<ReceiverWorld> {
  const resources = new AsyncDisposableStack();
  const databaseUrl = stores.databaseUrl ?? resources.use(await openTestDatabase()).url;
  const redis = testRedis();
  const config = testConfig({
    DATABASE_URL: databaseUrl,
    REDIS_URL: stores.redisUrl ?? redis.url,
    REDIS_PREFIX: redis.prefix,
    ...stores.env,
  });
  const ctx = await openContext(config, resources, { name: "test" });
  if (!stores.redisUrl)
    resources.defer(() =>
      Promise.all(Object.values(ctx.queues).map((queue) => queue.obliterate({ force: true }))).then(() => {}),
    );
  const web = openWeb(ctx);
  resources.defer(() => web.close());
  const url = await web.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    stores: ctx,
    deliver: (options = {}) => deliver(url, options),
    inbox: async () => await ctx.db.query<InboxRow>(sql`select * from deliveries order by received_at, guid`),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

export function testConfig(env: NodeJS.ProcessEnv): Config {
  return parseConfig({
    UPSTREAM_URL: "http://127.0.0.1:1",
    UPSTREAM_TOKEN: "test-upstream-token",
    WEBHOOK_SECRET: `${SECRET},${OLDER_SECRET}`,
    LOG_LEVEL: process.env.TEST_LOG ?? "silent",
    ...env,
  });
}

export const opened = {
  action: "opened",
  issue: { id: 1, title: "Hello" },
  repository: { id: 7, full_name: "octo/demo" },
};

async function deliver(
  url: string,
  sending: Sending,
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const body = sending.body ?? JSON.stringify(sending.payload ?? opened);
  const signed =
    typeof body === "string" && body !== "" ? await sign(sending.secret ?? SECRET, body) : `sha256=${"0".repeat(64)}`;
  const headers = new Headers({
    "content-type": "application/json",
    "x-github-event": sending.event ?? "issues",
    "x-github-delivery": sending.guid ?? crypto.randomUUID(),
    "x-github-hook-id": String(sending.hookId ?? 42),
    "x-hub-signature-256": signed,
  });
  for (const [name, value] of Object.entries(sending.headers ?? {})) {
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  const answer = await fetch(`${url}/webhooks${sending.query ?? ""}`, { method: "POST", headers, body });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, unknown> };
}

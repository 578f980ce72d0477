import { createHmac, randomUUID } from "node:crypto";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import type { ServerProcess } from "../processes.ts";

/** The stages that a delivery needs before it can be shown, each alone. */
export async function openStages({
  bare,
  databaseUrl,
  redis,
  body,
}: {
  bare: ServerProcess;
  databaseUrl: string;
  redis: { url: string; prefix: string };
  body: Buffer;
}): Promise<{ each: Record<string, () => Promise<void>> } & AsyncDisposable> {
  const resources = new AsyncDisposableStack();
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  resources.defer(() => client.end());
  await client.query("create table plain_deliveries (id uuid primary key, payload bytea)");

  const adding = new Redis(redis.url);
  const working = new Redis(redis.url, { maxRetriesPerRequest: null });
  resources.defer(() => {
    adding.disconnect();
    working.disconnect();
  });
  const queue = new Queue("plain", { connection: adding, prefix: `${redis.prefix}-plain` });
  let done = () => {};
  const worker = new Worker("plain", async () => done(), { connection: working, prefix: `${redis.prefix}-plain` });
  resources.defer(() => queue.close());
  resources.defer(() => worker.close());
  await worker.waitUntilReady();

  const signature = `sha256=${createHmac("sha256", "bench-webhook-secret").update(body).digest("hex")}`;
  return {
    each: {
      roundTripMs: async () => {
        const answer = await fetch(bare.url, { method: "POST", body, headers: { "x-hub-signature-256": signature } });
        if (answer.status !== 202) throw new Error(`The bare server answers ${answer.status}`);
        await answer.arrayBuffer();
      },
      commitMs: async () => {
        await client.query({
          name: "commit",
          text: "insert into plain_deliveries values ($1, $2)",
          values: [randomUUID(), body],
        });
      },
      jobMs: async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        done = resolve;
        await queue.add("one", { id: randomUUID() }, { removeOnComplete: true });
        await promise;
      },
      readMs: async () => {
        await client.query({
          name: "read",
          text: "select document::text, body from issues where number = $1",
          values: [1],
        });
      },
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

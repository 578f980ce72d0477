import { setImmediate as turn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { openLog } from "../../src/operations/log.ts";
import { openRedis } from "../../src/operations/redis.ts";
import { closeQueues, openQueues, QUEUE_KEYS } from "../../src/queues/queues.ts";
import { NOWHERE, testConfig } from "../support/config.ts";
import { testRedis } from "../support/database.ts";
import { until } from "../support/patience.ts";

const EVENTS = ["ready", "close", "error", "end"];

function openAt(url: string) {
  const config = testConfig({
    database: NOWHERE.database,
    redis: { ...testRedis(), url },
    upstream: NOWHERE.upstream,
  });
  const log = openLog(config, { name: "test" });
  const redis = openRedis({ config, log }, "test");
  return {
    redis,
    listeners: () => EVENTS.map((event) => redis.listenerCount(event)),
    open: () => openQueues({ config, redis, log, random: Math.random }),
  };
}

test("queues whose first words were cut off are replaced when Redis is back, and nothing of them stays", async () => {
  const { redis, listeners, open } = openAt(testRedis().url);
  await until("Redis is there", () => redis.status === "ready");
  const before = listeners();
  const words = vi.spyOn(redis, "info").mockRejectedValue(new Error("Connection is closed."));
  const queues = open();
  const { deliveries } = queues;
  await Promise.all(Object.values(queues).map((queue) => expect(queue.waitUntilReady()).rejects.toThrow("closed")));
  // Each queue has a listener of its own, and there is one for all of them.
  expect(redis.listenerCount("ready")).toBe((before[0] ?? 0) + QUEUE_KEYS.length + 1);
  words.mockRestore();
  redis.disconnect(true);
  await until("another queue is there", () => queues.deliveries !== deliveries);
  await Promise.all(Object.values(queues).map((queue) => queue.waitUntilReady()));
  expect(redis.listenerCount("ready")).toBe((before[0] ?? 0) + QUEUE_KEYS.length);
  await queues.deliveries.add("apply", { deliveryId: "one" });
  await closeQueues(queues);
  expect(listeners()).toEqual(before);
  redis.disconnect();
});

test("queues that Redis did not answer in time are replaced, though the connection stood all the while", async () => {
  const { redis, listeners, open } = openAt(testRedis().url);
  await until("Redis is there", () => redis.status === "ready");
  const before = listeners();
  const words = vi.spyOn(redis, "info").mockRejectedValue(new Error("Command timed out"));
  const queues = open();
  const { deliveries } = queues;
  await Promise.all(Object.values(queues).map((queue) => expect(queue.waitUntilReady()).rejects.toThrow("timed out")));
  words.mockRestore();
  await until("another queue is there", () => queues.deliveries !== deliveries);
  await queues.deliveries.add("apply", { deliveryId: "one" });
  await closeQueues(queues);
  expect(listeners()).toEqual(before);
  redis.disconnect();
});

test("queues that are closed before Redis ever came leave nothing on its connection", async () => {
  const { redis, listeners, open } = openAt(NOWHERE.redis);
  const before = listeners();
  // `once` of Node.js will not do, because it rejects when the connection emits an error.
  const comes = (event: string) => new Promise<void>((resolve) => redis.once(event, () => resolve()));
  const queues = open();
  await comes("reconnecting");
  await comes("connecting");
  // The connection is cut in the middle of an attempt, so that it says that it has ended.
  const ended = comes("end");
  redis.disconnect();
  await closeQueues(queues);
  await ended;
  await turn();
  expect(listeners()).toEqual(before);
});

import { expect, test } from "vitest";
import { askQueues, QueueUnavailableError } from "../../src/queues/queues.ts";

const ready = { redis: { status: "ready" as const } };

test("what Redis refuses is an outage of the queues; a mistake of ours is not disguised as one", async () => {
  await expect(askQueues(ready, () => Promise.reject(new Error("Connection is closed.")))).rejects.toBeInstanceOf(
    QueueUnavailableError,
  );
  const mistake = new TypeError("x is not a function");
  await expect(askQueues(ready, () => Promise.reject(mistake))).rejects.toBe(mistake);
});

test("a Redis that is away is not asked: BullMQ would wait for it without end", async () => {
  let asked = 0;
  const ask = () => {
    asked += 1;
    return Promise.resolve();
  };
  await expect(askQueues({ redis: { status: "reconnecting" } }, ask)).rejects.toThrow("Redis cannot be reached");
  expect(asked).toBe(0);
});

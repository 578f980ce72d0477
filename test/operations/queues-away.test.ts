import { expect, test } from "vitest";
import type { Logger } from "../../src/operations/log.ts";
import { askQueues, orLater, QueueUnavailableError } from "../../src/queues/queues.ts";

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

test("work that Postgres knows of waits for a Redis that is away, and a mistake of ours stays loud", async () => {
  const said: unknown[] = [];
  const log = { debug: (...words: unknown[]) => said.push(words) } as unknown as Logger;
  const away = () => askQueues({ redis: { status: "reconnecting" } }, () => Promise.resolve());
  await orLater({ log }, { task: "select" }, away);
  expect(said).toEqual([[expect.objectContaining({ task: "select" }), expect.stringContaining("scheduler")]]);
  const mistake = new TypeError("x is not a function");
  await expect(orLater({ log }, { task: "select" }, () => Promise.reject(mistake))).rejects.toBe(mistake);
});

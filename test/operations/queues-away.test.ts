import { EventEmitter } from "node:events";
import type { Worker } from "bullmq";
import { expect, test } from "vitest";
import { isMistake } from "../../src/failure.ts";
import type { Logger } from "../../src/operations/log.ts";
import { openRedis } from "../../src/operations/redis.ts";
import { askQueues, closeQueues, openQueues, orLater } from "../../src/queues/queues.ts";
import { QueueUnavailableError } from "../../src/queues/unavailable.ts";
import { logEvents } from "../../workers/worker.ts";
import { NOWHERE, testConfig } from "../support/config.ts";
import { testRedis } from "../support/database.ts";

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

/** As ioredis reports what Redis answers. */
const reply = (message: string, more = {}) => Object.assign(new Error(message), { name: "ReplyError", ...more });

const MISTAKES = [
  reply("WRONGTYPE Operation against a key holding the wrong kind of value"),
  reply("ERR Error running script"),
];

test.each(MISTAKES)("a command that Redis could never run is no outage of the queues: $message", async (mistake) => {
  const ask = () => askQueues(ready, () => Promise.reject(mistake));
  await expect(ask()).rejects.toBe(mistake);
  const log = { debug: () => expect.unreachable() } as unknown as Logger;
  await expect(orLater({ log }, { task: "select" }, ask)).rejects.toBe(mistake);
});

test("a full Redis is an outage, for a transaction too", async () => {
  const full = reply("OOM command not allowed when used memory > 'maxmemory'.");
  const aborted = (previousErrors: Error[]) =>
    reply("EXECABORT Transaction discarded because of previous errors.", { previousErrors });
  for (const outage of [full, aborted([full])])
    await expect(askQueues(ready, () => Promise.reject(outage))).rejects.toBeInstanceOf(QueueUnavailableError);
  expect(isMistake(aborted([reply("ERR wrong number of arguments for 'rpush' command")]))).toBe(true);
  expect(isMistake(aborted([]))).toBe(true);
});

test.each([
  // A Redis before 7 wraps what a command of a script met.
  "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:3: @user_script: 3: -OOM command not allowed when used memory > 'maxmemory'.",
  "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
  "ERR max number of clients reached",
])("an outage whose words begin as a mistake's do: %s", (words) => {
  expect(isMistake(reply(words))).toBe(false);
});

test("a script that Redis refuses is logged as an error, and an outage is not", async () => {
  const said: [level: string, error: unknown][] = [];
  const log = {
    debug: ({ err }: { err: unknown }) => said.push(["debug", err]),
    error: ({ err }: { err: unknown }) => said.push(["error", err]),
    warn: () => {},
    info: () => {},
  } as unknown as Logger;
  const [mistake, outage] = [MISTAKES[1] ?? expect.unreachable(), new Error("Connection is closed.")];
  const wanted = [
    ["error", mistake],
    ["debug", outage],
  ];

  const worker = new EventEmitter();
  // An emitter is all of a worker that is listened to here.
  logEvents({ log }, "deliveries", worker as unknown as Worker<{ deliveryId: string }, void, "apply">);
  for (const error of [mistake, outage]) worker.emit("error", error);
  expect(said.splice(0)).toEqual(wanted);

  const config = testConfig({ database: NOWHERE.database, redis: testRedis(), upstream: NOWHERE.upstream });
  const redis = openRedis({ config, log }, "test");
  const queues = openQueues({ config, redis, log, random: Math.random });
  await Promise.all(Object.values(queues).map((queue) => queue.waitUntilReady()));
  for (const error of [mistake, outage]) queues.deliveries.emit("error", error);
  expect(said).toEqual(wanted);
  await closeQueues(queues);
  redis.disconnect();
});

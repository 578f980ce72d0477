import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStateDirectory, tainHome } from "../../scripts/checkout.mjs";
import { freePort } from "../../scripts/ports.mjs";
import { findRedisProgram } from "../../scripts/redis-program.mjs";
import { examineRedis } from "../../src/cli/doctor/redis.ts";
import type { Logger } from "../../src/operations/log.ts";
import { openRedis } from "../../src/operations/redis.ts";
import { testConfig } from "../support/config.ts";
import { until } from "../support/patience.ts";

/** For Redis in protected mode this is another machine's address. */
const [outward] = Object.values(networkInterfaces())
  .flat()
  .filter((one) => one?.family === "IPv4" && !one.internal);
const program = await findRedisProgram(await openStateDirectory(tainHome()), new AbortController().signal);
const why = outward
  ? program.kind === "program"
    ? ""
    : "(skipped: Redis runs in a container)"
  : "(skipped: no network)";

test.skipIf(why !== "")(
  `a Redis in protected mode is said to be in it, by the log and by the doctor ${why}`,
  async () => {
    if (program.kind !== "program") throw new Error("Redis runs in a container");
    await using resources = new AsyncDisposableStack();
    const home = await mkdtemp(join(tmpdir(), "tain-redis-"));
    resources.defer(() => rm(home, { recursive: true, force: true }));
    const port = await freePort(undefined);
    const args = ["--bind", "0.0.0.0", "--port", String(port), "--dir", home, "--save", ""];
    const server = spawn(program.command, args, { env: program.env, stdio: ["ignore", "pipe", "ignore"] });
    resources.defer(async () => {
      server.kill();
      if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
    });
    let said = "";
    server.stdout.on("data", (text) => {
      said += text;
    });
    await until("Redis has started", () => said.includes("Ready to accept connections"));

    const redisUrl = `redis://${outward?.address}:${port}/0`;
    const config = testConfig({
      database: "postgres://a/b",
      redis: { url: redisUrl, prefix: "{t}" },
      upstream: "http://a",
    });
    const lines: unknown[] = [];
    const log = { warn: (about: unknown, text: string) => lines.push([text, about]), info: () => {} };
    // `warn` and `info` are the levels at which an outage of Redis is logged.
    const redis = openRedis({ config, log: log as unknown as Logger }, "test");
    resources.defer(async () => redis.disconnect());
    const reason = expect.stringContaining("Redis is in protected mode: it has no password");
    await until("the log says why", () => lines.length > 0);
    expect(lines).toEqual([["Redis cannot be reached; trying again until it can", { reason }]]);
    expect(await examineRedis({ config, redis, clock: { now: () => new Date() } })).toMatchObject([
      { check: "redis-away", says: expect.stringContaining("Redis is in protected mode") },
    ]);
  },
);

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { inherited, NOWHERE, testEnvironment } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { eventually } from "../support/patience.ts";

interface Started {
  child: ChildProcess;
  lines: Record<string, unknown>[];
  exited: Promise<number | null>;
}

/** Settings for processes on stores of this test's own. */
async function openStores(): Promise<NodeJS.ProcessEnv> {
  const { url: database } = await openTestDatabase();
  return testEnvironment({ database, redis: testRedis(), upstream: NOWHERE.upstream }, { LOG_LEVEL: "info" });
}

/** The headers of a delivery with a wrong signature. The receiver has to read the whole body to find that out. */
const DELIVERY = {
  "content-type": "application/json",
  "x-github-event": "issues",
  "x-github-delivery": "a-guid-of-ours",
  "x-hub-signature-256": `sha256=${"0".repeat(64)}`,
};

/** Starts a process that the Procfile names, by its file or by a command. */
function start(command: string, env: NodeJS.ProcessEnv): Started {
  const child = spawn(process.execPath, command.split(" "), {
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: Record<string, unknown>[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(JSON.parse(line)));
  createInterface({ input: child.stderr }).on("line", (line) => lines.push({ level: 60, msg: line }));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, lines, exited };
}

const said = async (started: Started, message: string) =>
  await eventually(() => {
    const line = started.lines.find((candidate) => candidate.msg === message);
    expect(line, JSON.stringify(started.lines)).toBeDefined();
    return line as Record<string, unknown>;
  });

describe("each process of the Procfile", () => {
  test.each([
    ["src/web.ts", "Listening"],
    ["workers/main.ts", "Working"],
    ["workers/scheduler.ts", "Scheduling"],
    ["src/cli/main.ts web", "Listening"],
    ["src/cli/main.ts worker", "Working"],
    ["src/cli/main.ts scheduler", "Scheduling"],
    ["scripts/tain-command.mjs scheduler", "Scheduling"],
  ])("%s starts, stops on SIGTERM with status 0, and logs no error and no secret", async (entry, message) => {
    const env = await openStores();
    const started = start(entry, env);
    await said(started, message);
    started.child.kill("SIGTERM");
    expect(await started.exited).toBe(0);
    expect(started.lines.filter((line) => Number(line.level) >= 40)).toEqual([]);
    for (const secret of [env.WEBHOOK_SECRET, env.UPSTREAM_TOKEN])
      expect(JSON.stringify(started.lines)).not.toContain(secret);
  });

  test.each([
    ["src/web.ts", "Listening"],
    ["workers/main.ts", "Working"],
    ["workers/scheduler.ts", "Scheduling"],
  ])("%s starts and stops with both stores away", async (entry, message) => {
    const redis = { url: NOWHERE.redis, prefix: "{t}" };
    const started = start(entry, testEnvironment({ ...NOWHERE, redis }, { LOG_LEVEL: "info" }));
    await said(started, message);
    started.child.kill("SIGTERM");
    expect(await started.exited).toBe(0);
  });

  test.each(["workers/scheduler.ts", "src/cli/main.ts scheduler", "scripts/tain-command.mjs worker"])(
    "%s says every fault of its configuration at once",
    async (command) => {
      const started = start(command, { UPSTREAM_URL: NOWHERE.upstream, PORT: "many" });
      expect(await started.exited).toBe(1);
      const output = started.lines.map((line) => line.msg).join("\n");
      expect(output).toContain("DATABASE_URL is not set");
      expect(output).toContain("WEBHOOK_SECRET is not set");
      expect(output).toContain("PORT is not a port: many");
      expect(output).not.toContain("    at ");
    },
  );

  test("a process that cannot finish in SHUTDOWN_TIMEOUT ends with status 1", async () => {
    const env = await openStores();
    const started = start("src/web.ts", { ...env, SHUTDOWN_TIMEOUT: "500ms" });
    const { address } = await said(started, "Listening");
    // A request whose body never ends keeps the server from closing.
    const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode("{")) });
    const answer = fetch(`${address}/webhooks`, {
      method: "POST",
      body,
      duplex: "half",
      headers: DELIVERY,
    });
    answer.catch(() => {}); // The request is cut off.
    await fetch(`${address}/-/live`);
    started.child.kill("SIGTERM");
    expect(await started.exited).toBe(1);
  });
});

test("a process that is told to stop again ends at once with status 1, and says so", async () => {
  const env = await openStores();
  const started = start("src/web.ts", env);
  const { address } = await said(started, "Listening");
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode("{")) });
  // The request is cut off.
  fetch(`${address}/webhooks`, { method: "POST", body, duplex: "half", headers: DELIVERY }).catch(() => {});
  await fetch(`${address}/-/live`); // By then the other request has arrived.
  const asking = setInterval(() => started.child.kill("SIGTERM"), 100);
  try {
    expect(await started.exited).toBe(1);
  } finally {
    clearInterval(asking);
  }
  await said(started, "Told to stop again: ending at once and leaving the rest to other processes");
});

test("a second web on the port says in a sentence that it is taken, and the first finishes the requests in flight before it stops", async () => {
  const env = await openStores();
  const started = start("src/web.ts", env);
  const { address } = await said(started, "Listening");
  const { port } = new URL(String(address));
  const second = start("src/web.ts", { ...env, PORT: port });
  expect(await second.exited).toBe(1);
  expect(second.lines).toEqual([
    { level: 60, msg: expect.stringContaining(`another process listens on 127.0.0.1:${port}`) },
  ]);

  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const body = new ReadableStream({
    start: (stream) => stream.enqueue(new TextEncoder().encode("{")),
    pull: async (stream) => {
      await held;
      stream.enqueue(new TextEncoder().encode("}"));
      stream.close();
    },
  });
  const answer = fetch(`${address}/webhooks`, {
    method: "POST",
    body,
    duplex: "half",
    headers: DELIVERY,
  });
  await fetch(`${address}/-/live`); // By then the other request has arrived.
  started.child.kill("SIGTERM");
  await said(started, "Stopping: finishing what has begun");
  // When a terminal interrupts a whole group of processes, the parent asks them to stop as well. The two requests
  // together count as one.
  started.child.kill("SIGINT");
  release();
  expect((await answer).status).toBe(401);
  expect(await started.exited).toBe(0);
});

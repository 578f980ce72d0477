/** Hundreds of requests that are no deliveries, sent to a web process as it runs in production. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { printFigures } from "../support/figures.ts";
import { eventually } from "../support/patience.ts";
import { type Program, startProgram } from "../support/program.ts";
import { deliverTo, openReceiverWorld, type ReceiverWorld } from "./receiver-world.ts";

let world: ReceiverWorld;
beforeAll(async () => {
  world = await openReceiverWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const MB = 1_000_000;
const ZEROS = `sha256=${"0".repeat(64)}`;
const whole = {
  "Content-Type": "application/json",
  "Content-Length": String(24 * MB),
  "X-GitHub-Event": "issues",
  "X-GitHub-Delivery": "a-guid-of-ours",
  "X-Hub-Signature-256": ZEROS,
};

/** All senders share these bytes, because this process is not what is measured. */
const FILLING = Buffer.alloc(2 * MB, "x");

interface Sender {
  socket: Socket;
  /** The part of the answer that has arrived so far. */
  answer: () => string;
}

/** Sends the head of a request, and so many bytes of its body. */
async function begin(url: string, headers: Record<string, string | null>, bytes = 0): Promise<Sender> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", () => {}); // The connection is cut at the end of the test.
  await once(socket, "connect");
  const lines = Object.entries({ Host: "x", ...headers }).flatMap(([name, value]) =>
    value === null ? [] : `${name}: ${value}\r\n`,
  );
  socket.write(`POST /webhooks HTTP/1.1\r\n${lines.join("")}\r\n`);
  if (bytes > 0) socket.write(FILLING.subarray(0, bytes));
  return { socket, answer: () => answer };
}

const statusOf = ({ answer }: Sender) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer())?.[1] ?? 0);

describe("a request that its headers forbid is answered before a byte of its body has come", () => {
  test.each([
    ["without a signature", { "X-Hub-Signature-256": null }, 401],
    ["with a malformed one", { "X-Hub-Signature-256": "sha256=abc" }, 401],
    ["without an event", { "X-GitHub-Event": null }, 400],
    ["without a GUID", { "X-GitHub-Delivery": null }, 400],
    ["with a hook that is no number", { "X-GitHub-Hook-ID": "one" }, 400],
    ["of another type", { "Content-Type": "text/plain" }, 415],
    ["compressed", { "Content-Encoding": "gzip" }, 415],
    ["too large", { "Content-Length": String(27 * MB) }, 413],
    ["too large and unsigned", { "Content-Length": String(27 * MB), "X-Hub-Signature-256": null }, 401],
  ])("%s", async (_, headers, status) => {
    const sender = await begin(world.url, { ...whole, ...headers });
    await eventually(() => expect(statusOf(sender)).toBe(status));
    sender.socket.destroy();
  });
});

async function residentBytes({ pid }: Program): Promise<number> {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1_024;
}

/** The 800 requests together announce 19 GB. */
const BUDGET = 32 * MB;
const REQUESTS = 800;
const A_CONNECTION = 16 * 1_024;
const LARGE_UNSIGNED = 40;
const HALF = 1.5 * MB;
const SENT = LARGE_UNSIGNED * 2 * MB + (REQUESTS / 2) * HALF;

/** Sends this many requests at once, a fourth of them of each kind. */
async function flood(url: string, requests: number) {
  const unsigned = { ...whole, "X-Hub-Signature-256": null };
  const senders = await Promise.all(
    Array.from({ length: requests / 4 }, async (_, at) => ({
      announced: await begin(url, whole),
      unsigned: await begin(url, unsigned, at < LARGE_UNSIGNED ? 2 * MB : 0),
      halfSent: await begin(url, whole, HALF),
      larger: await begin(url, whole, HALF + at * 1_000),
    })),
  );
  const slow = setInterval(() => {
    for (const { announced } of senders) announced.socket.write("x");
  }, 100);
  return {
    /** Waits until the unsigned requests are refused, and enough of the others that the rest has room. */
    settled: () =>
      eventually(() => {
        const given = senders
          .flatMap(({ halfSent, larger }) => [halfSent, larger])
          .filter((one) => statusOf(one) === 503);
        expect(given.length).toBeGreaterThanOrEqual(requests / 2 - BUDGET / HALF);
        expect(given[0]?.answer()).toMatch(/\r\nRetry-After: \d+\r\n/);
        expect(senders.map((one) => statusOf(one.unsigned))).toEqual(senders.map(() => 401));
      }),
    [Symbol.dispose]() {
      clearInterval(slow);
      for (const kinds of senders) for (const { socket } of Object.values(kinds)) socket.destroy();
    },
  };
}

/**
 * Each reading counts what is in use after garbage collection. How much garbage there is meanwhile depends on the
 * machine: V8 begins to collect once there are 64 MiB of it, and more arrives before it has. So of the resident memory
 * this test asks only one thing: most of what was sent is never in memory together.
 */
test("eight hundred slow, huge, unsigned and half-sent requests keep no signed delivery out, nor fill memory or log", async () => {
  const env = { ...world.env, LOG_LEVEL: "info", WEBHOOK_BODIES_SIZE: `${BUDGET / MB}MB`, WEBHOOK_BODY_TIMEOUT: "10m" };
  const insides = fileURLToPath(new URL("../support/insides.ts", import.meta.url));
  const web = startProgram("src/web.ts", env, [], { nodeFlags: ["--expose-gc", "--import", insides] });
  const { address: url } = (await web.said("Listening")) as unknown as { address: string };
  const deliver = async (count: number) => {
    const statuses = await Promise.all(
      Array.from({ length: count }, () => deliverTo(url).then(({ status }) => status)),
    );
    expect(new Set(statuses)).toEqual(new Set([202]));
  };
  // No type can say what a line of the log holds.
  const { port } = (await web.said("Insides")) as unknown as { port: number };
  const inUse = async () => {
    const memory = (await (await fetch(`http://127.0.0.1:${port}/memory`)).json()) as NodeJS.MemoryUsage;
    return { bodiesBytes: memory.arrayBuffers, allBytes: memory.heapUsed + memory.external };
  };
  await deliver(50);
  const residentBefore = await residentBytes(web);
  // A first flood has the process load and compile its code before the first reading.
  const first = await flood(url, 160);
  await first.settled();
  first[Symbol.dispose]();
  const before = await eventually(async () => {
    const now = await inUse();
    expect(now.bodiesBytes).toBeLessThan(2 * HALF);
    return now;
  });

  using storm = await flood(url, REQUESTS);
  const peak = { bodiesBytes: 0, allBytes: 0 };
  const read = async () => {
    const now = await inUse();
    peak.bodiesBytes = Math.max(peak.bodiesBytes, now.bodiesBytes - before.bodiesBytes);
    peak.allBytes = Math.max(peak.allBytes, now.allBytes - before.allBytes);
    expect(peak.allBytes).toBeLessThanOrEqual(BUDGET + REQUESTS * A_CONNECTION);
  };
  for (let part = 0; part < 10; part++) {
    await read();
    await deliver(10);
  }
  await storm.settled();
  await read();
  await deliver(100);
  const residentBytesGrown = (await web.peakResidentBytes()) - residentBefore;
  const told = web.lines.filter(({ msg }) => /refused/.test(msg));
  printFigures("receiver flood", {
    requests: REQUESTS,
    sentBytes: SENT,
    budgetBytes: BUDGET,
    ...peak,
    residentBytesGrown,
    logLines: told.length,
  });
  // At the last reading the budget was nearly used up. So the bodies are what was measured.
  expect(peak.bodiesBytes).toBeGreaterThan(BUDGET / 2);
  expect(residentBytesGrown).toBeLessThan(SENT / 2);
  expect(told.length).toBeGreaterThanOrEqual(1);
  expect(told.length).toBeLessThanOrEqual(10);
});

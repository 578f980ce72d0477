/** Requests that are no deliveries. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/patience.ts";
import { openReceiverWorld, type ReceiverWorld } from "./receiver-world.ts";

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

interface Sender {
  socket: Socket;
  /** What has come back so far. */
  answer: () => string;
}

/** Sends the head of a request, and nothing of its body. */
async function begin(url: string, headers: Record<string, string | null>): Promise<Sender> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", () => {}); // It is cut at the end.
  await once(socket, "connect");
  const lines = Object.entries({ Host: "x", ...headers }).flatMap(([name, value]) =>
    value === null ? [] : `${name}: ${value}\r\n`,
  );
  socket.write(`POST /webhooks HTTP/1.1\r\n${lines.join("")}\r\n`);
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

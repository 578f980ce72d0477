import { once } from "node:events";
import { connect } from "node:net";
import { expect, test, vi } from "vitest";
import type { Exchange } from "../../src/http/exchange.ts";
import type { Reply } from "../../src/http/reply.ts";
import { Router } from "../../src/http/router.ts";
import { HttpServer } from "../../src/http/server.ts";
import { openLog } from "../../src/operations/log.ts";
import { NOWHERE, testConfig } from "../support/config.ts";

const replies: Record<string, Reply> = {
  "/not-modified": { status: 304, headers: { ETag: '"one"', Vary: "Accept" }, body: null },
  "/nothing": { status: 204, headers: {}, body: null },
  "/empty": { status: 200, headers: { "Content-Type": "text/plain" }, body: null },
  "/text": { status: 200, headers: { "Content-Type": "text/plain; charset=utf-8" }, body: "…and 🚀" },
  "/bytes": { status: 404, headers: { "X-Latin": "é" }, body: Buffer.from([0, 255, 10, 13]) },
  "/slow": { status: 200, headers: {}, body: "late" },
  "/dated": { status: 304, headers: { date: "Sun, 01 Nov 2026 12:00:00 GMT" }, body: null },
  "/large": { status: 200, headers: {}, body: "0123456789".repeat(100_000) },
  "/twice": { status: 200, headers: { "Set-Cookie": ["a=1", "b=2"] }, body: "{}" },
};

const DATE = /Date: [^\r]* GMT/g;
/** How much longer a date is than `now`. */
const DATE_LENGTH = "Sun, 01 Nov 2026 12:00:00 GMT".length - "now".length;

/** This reply gets no answer: HTTP does not allow its header. */
const BROKEN: Reply = { status: 200, headers: { "X-Broken": "a\r\nX-Injected: b" }, body: "never sent" };

/** A server of `replies`, and a connection to it. `/slow` is answered once it is let go. */
async function openConnection(resources: AsyncDisposableStack, now = () => new Date()) {
  const slow = Promise.withResolvers<void>();
  const handled: string[] = [];
  const gone: string[] = [];
  const logged: string[] = [];
  const handle = async (exchange: Exchange): Promise<Reply> => {
    exchange.gone.addEventListener("abort", () => gone.push(exchange.path));
    handled.push(exchange.path);
    if (exchange.path === "/slow") await slow.promise;
    return replies[exchange.path] ?? BROKEN;
  };
  const places = { ...NOWHERE, redis: { url: NOWHERE.redis, prefix: "{test}" } };
  const config = testConfig(places, { LOG_LEVEL: "error" });
  const server = new HttpServer({
    routes: new Router([]),
    otherwise: handle,
    failure: (error) => ({ status: 400, headers: {}, body: String(error) }),
    trustedProxies: [],
    clock: { now },
    log: openLog(config, { name: "test" }, { write: (line) => logged.push(line) }),
  });
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  resources.defer(() => server.close());
  const socket = connect(Number(port), "127.0.0.1");
  resources.defer(() => void socket.destroy());
  let received = "";
  let check = () => {};
  socket.setEncoding("latin1").on("data", (piece: string) => {
    received += piece.replaceAll(DATE, "Date: now");
    check();
  });
  await once(socket, "connect");
  /** Answers everything received once an answer has ended, not counting the first `before` answers. */
  const ask = (text: string, before = 0): Promise<string> => {
    received = "";
    socket.write(text);
    return new Promise((resolve) => {
      check = () => {
        const answers = received.split(/(?=HTTP\/1\.1 \d)/);
        if (answers.length <= before || !isWhole(answers.at(-1) ?? "", text.startsWith("HEAD"))) return;
        check = () => {};
        resolve(received);
      };
    });
  };
  return { socket, ask, slow, handled, gone, logged, received: () => received };
}

/** Whether an answer has its whole head, and a body as long as the head says. */
function isWhole(answer: string, isHead: boolean): boolean {
  const end = answer.indexOf("\r\n\r\n");
  const length = isHead ? 0 : Number(/\r\nContent-Length: (\d+)/.exec(answer)?.[1] ?? 0);
  return end >= 0 && answer.length >= end + 4 + length;
}

const request = (path: string, { method = "GET", version = "1.1", more = "" } = {}) =>
  `${method} ${path} HTTP/${version}\r\nHost: x\r\n${more}\r\n`;

const asked = Object.keys(replies)
  .filter((path) => !["/slow", "/dated", "/large"].includes(path))
  .flatMap((path) => ["GET", "HEAD"].map((method) => [method, path] as const));

test.each(asked)("%s %s is the same, at once and behind an answer that is late", async (method, path) => {
  await using resources = new AsyncDisposableStack();
  const { ask, slow, handled } = await openConnection(resources);
  const atOnce = await ask(request(path, { method }));
  expect(atOnce).toMatch(
    /^HTTP\/1\.1 \d{3} [A-Z][\s\S]*\r\nDate: now\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\n/,
  );
  // Node.js keeps answers whose turn has not come, and sends them.
  const both = ask(request("/slow", { method }) + request(path, { method }), 1);
  await vi.waitUntil(() => handled.filter((one) => one === path).length === 2);
  slow.resolve();
  expect((await both).slice(-atOnce.length)).toBe(atOnce);
});

test("an answer tells the time of the server's clock", async () => {
  await using resources = new AsyncDisposableStack();
  const { socket } = await openConnection(resources, () => new Date("2020-02-29T12:00:00.999Z"));
  socket.removeAllListeners("data").write(request("/text"));
  const [answer] = (await once(socket, "data")) as [string];
  expect(answer.match(/\r\ndate: .*/gi)).toEqual(["\r\nDate: Sat, 29 Feb 2020 12:00:00 GMT"]);
});

test("an answer that brings its date has no other", async () => {
  await using resources = new AsyncDisposableStack();
  const { ask } = await openConnection(resources);
  const answer = await ask(request("/dated"));
  expect(answer.match(/\r\ndate: .*/gi)).toEqual(["\r\ndate: Sun, 01 Nov 2026 12:00:00 GMT"]);
});

test("many answers follow one another on a connection", async () => {
  await using resources = new AsyncDisposableStack();
  const { ask, gone } = await openConnection(resources);
  const first = await ask(request("/text"));
  for (let times = 0; times < 20; times++) {
    await ask(request("/not-modified"));
    expect(await ask(request("/text"))).toBe(first);
  }
  expect(gone).toEqual([]);
});

test("answers that wait for their reader are all read in the end", async () => {
  await using resources = new AsyncDisposableStack();
  const { socket, ask, handled, gone } = await openConnection(resources);
  const one = await ask(request("/large"));
  // More than the kernel takes.
  const times = 30;
  const pieces: string[] = [];
  socket.on("data", (piece: string) => pieces.push(piece));
  socket.pause().write(request("/large").repeat(times));
  await vi.waitUntil(() => handled.length === times + 1, 20_000);
  socket.resume();
  await vi.waitUntil(() => pieces.join("").length === times * (one.length + DATE_LENGTH), 20_000);
  expect(pieces.join("").replaceAll(DATE, "Date: now")).toBe(one.repeat(times));
  expect(await ask(request("/text"))).toContain("\r\n\r\n");
  expect(gone).toEqual([]);
});

test.each([
  ["that its caller wants to be closed", { more: "Connection: close\r\n" }],
  ["of HTTP/1.0", { version: "1.0" }],
])("a connection %s is closed behind the answer", async (_name, how) => {
  await using resources = new AsyncDisposableStack();
  const { socket, ask } = await openConnection(resources);
  const closed = once(socket, "close");
  const answer = await ask(request("/text", how));
  expect(answer).toContain("\r\nConnection: close\r\n");
  expect(Buffer.from(answer, "latin1").toString()).toContain("\r\n\r\n…and 🚀");
  await closed;
});

test("a caller has gone only if they leave before their answer", async () => {
  await using resources = new AsyncDisposableStack();
  const answered = await openConnection(resources);
  await answered.ask(request("/bytes"));
  answered.socket.destroy();
  const left = await openConnection(resources);
  left.socket.write(request("/slow"));
  await vi.waitUntil(() => left.handled.length === 1);
  left.socket.destroy();
  await vi.waitUntil(() => left.gone.length === 1);
  expect([answered.gone, left.gone]).toEqual([[], ["/slow"]]);
  left.slow.resolve();
});

test("a header with a line break breaks the answer off before any of it is sent, and is logged", async () => {
  await using resources = new AsyncDisposableStack();
  const { socket, logged, received } = await openConnection(resources);
  socket.write(request("/broken"));
  await once(socket, "close");
  expect(received()).toBe("");
  expect(logged.join()).toContain("Invalid character in header content");
});

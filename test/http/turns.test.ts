import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { BodyBudget } from "../../src/http/body.ts";
import { type Handler, Router } from "../../src/http/router.ts";
import { HttpServer } from "../../src/http/server.ts";
import { openLog } from "../../src/operations/log.ts";
import { NOWHERE, testConfig } from "../support/config.ts";

const MB = 1_000_000;
const CONNECTIONS = 20;
/** Senders fill the buffers of both ends of their connections before the server's next turn. */
const FILLING = Buffer.alloc(2 * MB, " ");
/** The first piece of each, and those that a turn reads beside it. */
const MOST_A_TURN = 2 * MB;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function openServer(handle: Handler): Promise<{ port: number; accepted: Socket[] }> {
  const accepted: Socket[] = [];
  const note = (message: unknown) => accepted.push((message as { socket: Socket }).socket);
  channel("net.server.socket").subscribe(note);
  const server = new HttpServer({
    routes: new Router([{ method: "POST", path: "/", handle }]),
    otherwise: handle,
    failure: () => ({ status: 400, headers: {}, body: null }),
    trustedProxies: [],
    bodies: new BodyBudget({ maxBytes: 2 * CONNECTIONS * FILLING.length, patienceMs: 60_000 }),
    clock: { now: () => new Date() },
    log: openLog(testConfig({ ...NOWHERE, redis: { url: NOWHERE.redis, prefix: "{test}" } }), { name: "test" }),
  });
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  closing.push(
    () => channel("net.server.socket").unsubscribe(note),
    () => server.close(),
  );
  return { port: Number(port), accepted };
}

async function send(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  closing.unshift(() => socket.destroy());
  await once(socket, "connect");
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${FILLING.length}\r\n\r\n`);
  socket.write(FILLING);
  return socket;
}

/** The most bytes that all connections read between two turns of the event loop, until each has read its body. */
async function mostATurn(accepted: readonly Socket[]): Promise<number> {
  const read = () => accepted.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  let most = 0;
  for (let before = 0; before < CONNECTIONS * FILLING.length; ) {
    await new Promise(setImmediate);
    const now = read();
    most = Math.max(most, now - before);
    before = now;
  }
  return most;
}

test.each<[string, Handler]>([
  [
    "are read",
    async (exchange) => {
      using _body = await exchange.body(2 * FILLING.length, null);
      return { status: 204, headers: {}, body: null };
    },
  ],
  ["are left unread", () => ({ status: 401, headers: {}, body: null })],
])("however many bodies arrive at once, a turn of the event loop takes little of them: they %s", async (_, handle) => {
  const { port, accepted } = await openServer(handle);
  const senders = await Promise.all(Array.from({ length: CONNECTIONS }, () => send(port)));
  const answered = Promise.all(senders.map((socket) => once(socket, "data")));
  expect(await mostATurn(accepted)).toBeLessThan(MOST_A_TURN);
  await answered;
});

test("a connection whose body was left unread takes the next request", async () => {
  const { port } = await openServer(() => ({ status: 401, headers: {}, body: null }));
  const socket = await send(port);
  await once(socket, "data");
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /);
});

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { Exchange } from "../../src/http/exchange.ts";
import { Router } from "../../src/http/router.ts";
import { HttpServer } from "../../src/http/server.ts";
import { openLog } from "../../src/operations/log.ts";
import { NOWHERE, testConfig } from "../support/config.ts";

const MIB = 1024 * 1024;
/** More than the buffers of both ends of a connection take. */
const LONG = Buffer.alloc(64 * MIB, "x");

/**
 * A server whose answers may stay unread for a moment only, and a connection to it. `gone` settles once an answer was
 * broken off.
 */
async function openConnection(
  body: Buffer,
  resources: AsyncDisposableStack,
): Promise<{ socket: Socket; gone: Promise<void> }> {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const handle = (exchange: Exchange) => {
    exchange.gone.addEventListener("abort", () => resolve());
    return { status: 200, headers: {}, body };
  };
  const server = new HttpServer({
    routes: new Router([{ method: "GET", path: "/", handle }]),
    otherwise: handle,
    failure: (error) => {
      throw error;
    },
    trustedProxies: [],
    clock: { now: () => new Date() },
    log: openLog(testConfig({ ...NOWHERE, redis: { url: NOWHERE.redis, prefix: "{test}" } }), { name: "test" }),
    unreadMs: 100,
  });
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  resources.defer(() => server.close());
  const socket = connect(Number(port), "127.0.0.1");
  resources.defer(() => void socket.destroy());
  socket.on("error", () => {}); // The server may break off while we write.
  await once(socket, "connect");
  return { socket, gone };
}

const REQUEST = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

test("a long answer that nobody reads is broken off, whatever its caller says meanwhile", async () => {
  await using resources = new AsyncDisposableStack();
  const { socket, gone } = await openConnection(LONG, resources);
  socket.pause().write(REQUEST);
  const talking = setInterval(() => socket.write("\r\n"), 20);
  resources.defer(() => clearInterval(talking));
  await gone;
  expect(socket.bytesRead).toBeLessThan(LONG.length);
});

test("answers of one part, many of which nobody reads, are broken off", async () => {
  await using resources = new AsyncDisposableStack();
  const { socket, gone } = await openConnection(LONG.subarray(0, MIB), resources);
  socket.pause().write(REQUEST.repeat(64));
  await gone;
  expect(socket.bytesRead).toBeLessThan(64 * MIB);
});

test("a connection on which all was read stays open", async () => {
  await using resources = new AsyncDisposableStack();
  const { socket } = await openConnection(LONG.subarray(0, MIB), resources);
  let read = 0;
  socket.on("data", (piece: Buffer) => (read += piece.length));
  for (const answers of [1, 2]) {
    socket.write(REQUEST);
    await vi.waitUntil(() => read > answers * MIB);
    // Three times as long as an answer may stay unread.
    await setTimeout(300);
  }
  expect(socket.destroyed).toBe(false);
});

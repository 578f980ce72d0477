import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import type { Exchange } from "../../src/http/exchange.ts";
import { Router } from "../../src/http/router.ts";
import { HttpServer } from "../../src/http/server.ts";
import { openLog } from "../../src/operations/log.ts";
import { NOWHERE, testConfig } from "../support/config.ts";

test("the body of a caller who left before it was asked for is refused, and not waited for", async () => {
  const { promise: read, resolve, reject } = Promise.withResolvers<unknown>();
  const handle = async (exchange: Exchange) => {
    if (!exchange.gone.aborted) await once(exchange.gone, "abort");
    await new Promise(setImmediate);
    exchange.body(100).then(resolve, reject);
    return { status: 204, headers: {}, body: null };
  };
  const server = new HttpServer({
    routes: new Router([{ method: "POST", path: "/", handle }]),
    otherwise: handle,
    failure: () => ({ status: 400, headers: {}, body: null }),
    trustedProxies: [],
    clock: { now: () => new Date() },
    log: openLog(testConfig({ ...NOWHERE, redis: { url: NOWHERE.redis, prefix: "{test}" } }), { name: "test" }),
  });
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  const socket = connect(Number(port), "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
  await once(socket, "data");
  socket.destroy();
  await expect(read).rejects.toMatchObject({ status: 400, message: "The body ended before all of it had arrived" });
  await server.close();
});

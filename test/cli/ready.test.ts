import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { lackingAt } from "../../src/cli/up/ready.ts";

test("who starts Tain is told why the API is not ready", async () => {
  let [status, body] = [200, ""];
  // No connection outlives its answer, so the server's end is seen by the next connect alone.
  const server = createServer((_request, response) => response.writeHead(status, { connection: "close" }).end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server that listens at a port has such an address.
  const { port } = server.address() as AddressInfo;
  const asked = () => lackingAt(`http://127.0.0.1:${port}`, "token");
  expect(await asked()).toBeNull();
  [status, body] = [503, JSON.stringify({ missing: ["Redis cannot be reached", "a migration"] })];
  expect(await asked()).toBe("Redis cannot be reached; a migration");
  [status, body] = [401, ""];
  expect(await asked()).toBe("status 401");
  server.close();
  await once(server, "close");
  expect(await asked()).toBe(`no answer (connect ECONNREFUSED 127.0.0.1:${port})`);
});

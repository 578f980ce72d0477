import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { etagOf } from "../../src/simulator/rest/headers.ts";
import { announce } from "../processes.ts";

/** Ten thousand characters, as of a file or a commit. */
const BODY = JSON.stringify({ content: "x".repeat(10_000) });
/** An hour's. */
const QUOTA = 1_000_000;

/** Answers everything after `DELAY_MS`, as a service far away does, by the service's own rule for tags. */
const server = createServer(async (request, response) => {
  // Who a caller is and what they see is asked once.
  if (request.url === "/user") return response.end('{"id":5,"login":"person","type":"User"}');
  if (request.url === "/graphql") return response.end('{"data":{"metadata":[],"issues":[],"pulls":[]}}');
  await sleep(Number(process.env.DELAY_MS));
  const headers = {
    "content-type": "application/json; charset=utf-8",
    etag: `"${etagOf(request.headers, true, BODY)}"`,
    vary: "Accept, Authorization, Cookie",
    "x-ratelimit-limit": QUOTA,
    "x-ratelimit-remaining": QUOTA - 1,
    "x-ratelimit-used": 1,
    "x-ratelimit-reset": Math.ceil(Date.now() / 1_000) + 3_600,
    "x-ratelimit-resource": "core",
  };
  response.writeHead(200, headers).end(BODY);
});
server.listen(0, "127.0.0.1", () => {
  announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { TargetClient } from "../../src/events/post.ts";
import { requestTo } from "../../src/events/request.ts";
import { NOWHERE, testConfig } from "../support/config.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";

// Events go through a real proxy, which looks up names and judges where they lead.

let server: TargetServer;
let proxyUrl: string;
const asked: { method: string | undefined; to: string | undefined; credential: string | undefined }[] = [];
const tunnels = new Set<Socket>();
/** The names that the proxy knows, by where they lead. Undefined: it refuses. */
const leadsTo = new Map<string, string>();

const proxy = createServer((request, reply) => {
  asked.push(seen(request));
  reply.writeHead(405).end();
});
proxy.on("connect", (request, socket: Socket) => {
  asked.push(seen(request));
  tunnels.add(socket);
  socket.on("error", () => socket.destroy());
  const target = leadsTo.get(request.url ?? "");
  if (request.headers["proxy-authorization"] === undefined) {
    socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    return;
  }
  if (target === undefined) {
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    return;
  }
  const { hostname, port } = new URL(target);
  const there = connect(Number(port), hostname, () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    there.pipe(socket).pipe(there);
  });
  tunnels.add(there);
  there.on("error", () => socket.destroy());
});

function seen({ method, url: to, headers }: IncomingMessage) {
  return { method, to, credential: headers["proxy-authorization"] };
}

beforeAll(async () => {
  server = await openTargetServer();
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  if (address === null || typeof address === "string") throw new Error("The proxy listens nowhere");
  proxyUrl = `127.0.0.1:${address.port}`;
  leadsTo.set("ci.example:80", server.url);
});
afterAll(async () => {
  for (const socket of tunnels) socket.destroy();
  await server[Symbol.asyncDispose]();
  await new Promise((resolve) => proxy.close(resolve));
});
beforeEach(() => {
  asked.length = 0;
  server.heard.length = 0;
});

const PLACES = {
  ...{ database: NOWHERE.database, upstream: NOWHERE.upstream },
  redis: { url: NOWHERE.redis, prefix: "{test}" },
};
const request = { headers: { "x-github-event": "star", "x-github-delivery": "g" }, body: Buffer.from("{}") };

async function post(url: string, { allowed = "", by = `http://tain:p%40ss@${proxyUrl}` } = {}) {
  const config = testConfig(PLACES, { TARGETS_PROXY: by, TARGETS_ALLOWED: allowed });
  const noNames = async () => {
    throw new Error("The proxy looks up names, and nobody else");
  };
  const client = new TargetClient({ config, clock: { now: () => new Date() } }, noNames);
  try {
    return await client.post({ url, insecureSsl: false }, request);
  } finally {
    await client.close();
  }
}

test("a target is reached through it by a tunnel, with its credential, and by a name that only the proxy knows", async () => {
  expect(await post("http://ci.example/hook")).toMatchObject({ status: "OK", statusCode: 200 });
  expect(server.heard).toMatchObject([{ guid: "g", body: "{}" }]);
  expect(server.heard[0]?.headers).not.toHaveProperty("proxy-authorization");
  const credential = `Basic ${Buffer.from("tain:p@ss").toString("base64")}`;
  expect(asked).toEqual([{ method: "CONNECT", to: "ci.example:80", credential }]);
});

test("what the proxy refuses is a target that cannot be reached, and the reason tells no credential", async () => {
  for (const given of [{}, { by: `http://${proxyUrl}` }]) {
    const outcome = await post("https://inward.example/hook", given);
    expect(outcome).toMatchObject({ status: "failed to connect to host", statusCode: 502 });
    expect(outcome.reason).not.toMatch(/p@ss|p%40ss/);
  }
  expect(server.heard).toEqual([]);
});

test("an address that is inward by itself is refused before the proxy is asked, unless it is allowed", async () => {
  for (const url of ["http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/latest", "http://db.internal/"])
    expect((await post(url)).reason).toContain("TARGETS_ALLOWED");
  expect(asked).toEqual([]);
  leadsTo.set(new URL(server.url).host, server.url);
  expect(await post(server.url, { allowed: "127.0.0.1" })).toMatchObject({ status: "OK" });
});

test("a proxy that is away is no fault of the target's, and each event is tried again as ever", async () => {
  const outcome = await post("http://ci.example/hook", { by: "http://127.0.0.1:9" });
  expect(outcome).toMatchObject({ statusCode: 502, reason: expect.stringContaining("ECONNREFUSED") });
});

test("its address is a secret, and a wrong one stops the process in words", () => {
  expect(() => testConfig(PLACES, { TARGETS_PROXY: "socks5://10.0.0.1" })).toThrow(/TARGETS_PROXY/);
});

test("each signed request has a time that is signed as well, so that it cannot be sent again later", async () => {
  const target = {
    id: 1,
    scope: { kind: "repository", id: 2 },
    contentType: "json",
    format: null,
    rewriteTo: null,
  } as const;
  const payload = Buffer.from('{"action":"created"}');
  const at = new Date(1_700_000_000_900);
  const of = { event: "star", action: "created", guid: "g", eventId: 3, isMade: false };
  const message = { ...of, payload, receivedAt: at, sentAt: at };
  const config = { upstreamUrl: "https://api.github.com" };
  const { headers, body } = await requestTo({ config }, { ...target, installationId: null }, "s", message);
  expect(headers["X-Tain-Timestamp"]).toBe("1700000000");
  const signed = createHmac("sha256", "s").update(`1700000000.g.${body.toString()}`).digest("hex");
  expect(headers["X-Tain-Signature-256"]).toBe(`sha256=${signed}`);
  const unsigned = await requestTo({ config }, { ...target, installationId: null }, null, message);
  expect(Object.keys(unsigned.headers).filter((name) => /signature|timestamp/i.test(name))).toEqual([]);
});

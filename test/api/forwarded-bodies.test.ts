import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request as requestRaw, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rebasedBytes } from "../../src/api/forward/cache/body.ts";
import { forward } from "../../src/api/forward/forwarding.ts";
import { parseConfig } from "../../src/config.ts";
import { openLog } from "../../src/operations/log.ts";
import { UpstreamAsCaller } from "../../src/upstream/client/as-caller.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// Upstream's answer is forwarded while it arrives, byte for byte, and nothing of it is held.

const TOKEN = "ghp_of-a-person";
const MEGABYTE = 1024 * 1024;

type Play = (request: IncomingMessage, response: ServerResponse) => unknown;
const plays = new Map<string, Play>();
const asked: string[] = [];
const upstream = createServer((request, response) => {
  asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
  if (request.url === "/user") response.end(JSON.stringify({ id: 5, login: "person", type: "User" }));
  else if (request.url === "/graphql") response.end(JSON.stringify({ data: { nodes: [] } }));
  else plays.get(request.url ?? "")?.(request, response);
});
let world: ApiWorld;
let api: string;
beforeAll(async () => {
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  api = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  world = await openApiWorld({ repositories: 1, issues: 10, upstreamUrl: api, env: { PASS_THROUGH: "on" } });
  await askAt(world.url, "GET", "/user", { token: TOKEN });
});
afterAll(async () => {
  upstream.closeAllConnections();
  upstream.close();
  await world?.[Symbol.asyncDispose]();
});

const headers = { "user-agent": "test", authorization: `Bearer ${TOKEN}` };
const get = (path: string, more: Record<string, string> = {}, method = "GET") =>
  fetch(world.url + path, { method, headers: { ...headers, ...more }, redirect: "manual" });

/** The answer's beginning, with its reader in hand. */
async function begun(path: string): Promise<{ answer: IncomingMessage; leave: () => void }> {
  const request = requestRaw(world.url + path, { headers });
  request.on("error", () => {}).end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  answer.on("error", () => {});
  return { answer, leave: () => request.destroy() };
}

test("bytes arrive as they were sent, also those that are no text or hold upstream's address", async () => {
  const bytes = Buffer.concat([randomBytes(3 * MEGABYTE), Buffer.from(`${api}/repos`)]);
  for (const type of [
    ...["application/zip", "image/png", "text/plain", "application/vnd.github.diff; charset=utf-8"],
    ...["application/vnd.github.v3.raw; charset=utf-8", "application/vnd.github.raw+json; charset=utf-8"],
  ]) {
    plays.set("/bytes", (_request, response) => {
      response.setHeader("content-type", type).setHeader("content-length", bytes.length);
      response.setHeader("content-disposition", "attachment; filename=a.zip").end(bytes);
    });
    const answer = await get("/bytes");
    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("content-length")).toBe(`${bytes.length}`);
    expect(answer.headers.get("content-disposition")).toBe("attachment; filename=a.zip");
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes), type).toBe(true);
    const head = await get("/bytes", {}, "HEAD");
    expect([head.headers.get("content-length"), await head.text()]).toEqual([`${bytes.length}`, ""]);
  }
});

test("addresses are rewritten wherever the pieces of a document end", async () => {
  const text = JSON.stringify({ name: "näme", url: `${api}/a`, other: "http://127.0.0.1", more: [`${api}/b`, api] });
  async function* piecesOf(size: number) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  for (const size of [1, 2, 7, 40, 1_000]) {
    const out: Buffer[] = [];
    for await (const piece of rebasedBytes(piecesOf(size), `${api}/`, "https://ü.example/")) out.push(piece);
    expect(Buffer.concat(out).toString(), `${size}`).toBe(text.replaceAll(`${api}/`, "https://ü.example/"));
  }
});

test("a body that breaks off is broken off: it never looks whole", async () => {
  for (const type of ["application/zip", "application/json"]) {
    plays.set("/cut", (_request, response) => {
      response.setHeader("content-type", type).write("[1, 2,");
      response.write(" 3", () => setImmediate(() => response.destroy()));
    });
    await expect(get("/cut").then((answer) => answer.arrayBuffer())).rejects.toThrow();
  }
});

test("the log says that an answer broke off, and nothing of the token", async () => {
  const lines: string[] = [];
  const config = parseConfig({ ...world.env, LOG_LEVEL: "trace" });
  const log = openLog(config, { name: "web" }, { write: (line) => lines.push(line) });
  const own = new UpstreamAsCaller(world.ctx);
  try {
    const gone = new AbortController().signal;
    const asked = { method: "GET", path: "/cut", headers, body: "", api: world.url, upstreamUrl: api, gone, log };
    const { stream } = await forward(asked, (request) => own.forward({ ...request, token: TOKEN }));
    const dropped: string[] = [];
    await stream?.({
      write: () => true,
      drained: async () => "drained",
      onClose: () => {},
      drop: () => dropped.push("dropped"),
    });
    expect(dropped).toEqual(["dropped"]);
    expect(lines.join("")).toContain("broke off while it was forwarded");
    expect(lines.join("")).not.toContain(TOKEN);
  } finally {
    await own.close();
  }
});

test("a caller who leaves ends upstream's answer", async () => {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  plays.set("/endless", (_request, response) => {
    const more = () => !response.destroyed && (response.write(randomBytes(4_096)) ? setImmediate(more) : null);
    response.on("drain", more).once("close", resolve).setHeader("content-type", "application/zip");
    more();
  });
  const { answer, leave } = await begun("/endless");
  await once(answer, "data");
  leave();
  await ended;
});

test("a reader who does not read holds upstream back, and memory does not grow with the body", async () => {
  let written = 0;
  plays.set("/huge", (_request, response) => {
    response.setHeader("content-type", "application/octet-stream");
    const piece = randomBytes(MEGABYTE);
    const more = () => {
      for (let isTaken = true; isTaken && written < 64; written++) isTaken = response.write(piece);
      if (written === 64) response.end();
    };
    response.on("drain", more);
    more();
  });
  plays.set("/small", (_request, response) => response.setHeader("content-type", "text/plain").end("small"));
  const { answer } = await begun("/huge");
  answer.pause();
  // Everyone else is served meanwhile.
  for (let turn = 0; turn < 50; turn++) expect(await (await get("/small")).text()).toBe("small");
  expect(written).toBeLessThan(32);
  let size = 0;
  for await (const piece of answer) size += piece.length;
  expect(size).toBe(64 * MEGABYTE);
});

test("a redirect off the API is forwarded as it is, and nobody follows it with the token", async () => {
  const elsewhere = createServer((request, response) => {
    asked.push(`elsewhere ${request.url} ${request.headers.authorization}`);
    response.end();
  });
  elsewhere.listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  try {
    const signed = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/legacy?token=a%2Fb&back=${api}/x`;
    plays.set("/archive", (_request, response) => response.writeHead(302, { location: signed }).end());
    plays.set("/renamed", (_request, response) => response.writeHead(301, { location: `${api}/repositories/1` }).end());
    const away = await get("/archive");
    expect([away.status, away.headers.get("location"), await away.text()]).toEqual([302, signed, ""]);
    expect((await get("/renamed")).headers.get("location")).toBe(`${world.url}/repositories/1`);
    expect(asked.filter((one) => one.startsWith("elsewhere"))).toEqual([]);
  } finally {
    elsewhere.close();
  }
});

test("what a caller asks of the transfer goes along, and what belongs to one connection does not", async () => {
  const seen: IncomingMessage["headers"][] = [];
  plays.set("/part", (request, response) => {
    seen.push(request.headers);
    response.writeHead(206, {
      ...{ "content-type": "application/zip", "content-range": "bytes 0-3/9", "accept-ranges": "bytes" },
      ...{ "keep-alive": "timeout=1", "set-cookie": "a=b", upgrade: "h2c", "proxy-authenticate": "Basic" },
    });
    response.end("PK..");
  });
  const more = { range: "bytes=0-3", "if-range": '"x"', cookie: "c=d", te: "trailers", "x-forwarded-for": "192.0.2.1" };
  const answer = await get("/part", more);
  expect([answer.status, await answer.text(), answer.headers.get("content-range")]).toEqual([
    ...[206, "PK..", "bytes 0-3/9"],
  ]);
  for (const name of ["set-cookie", "upgrade", "proxy-authenticate"]) expect(answer.headers.get(name), name).toBeNull();
  expect(seen[0]).toMatchObject({ range: "bytes=0-3", "if-range": '"x"', "user-agent": "test" });
  for (const name of ["cookie", "te", "x-forwarded-for"]) expect(seen[0]?.[name], name).toBeUndefined();
});

test("a failure of upstream's is its answer, and a write is sent once, whatever becomes of it", async () => {
  plays.set("/failing", (_request, response) => {
    response.writeHead(503, { "content-type": "application/json", "retry-after": "7" });
    response.end('{"message":"Unicorn"}');
  });
  for (const method of ["GET", "POST"]) {
    asked.length = 0;
    const answer = await get("/failing", {}, method);
    expect([answer.status, answer.headers.get("retry-after"), await answer.json()]).toEqual([
      ...[503, "7", { message: "Unicorn" }],
    ]);
    expect(asked).toHaveLength(1);
  }
  plays.set("/dropping", (request) => request.socket.destroy());
  asked.length = 0;
  expect((await get("/dropping", {}, "DELETE")).status).toBe(502);
  expect(asked).toHaveLength(1);
});

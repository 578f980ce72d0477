import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { UpstreamRefusedError } from "../../src/upstream/protocol/errors.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { json, openUpstreamWorld, quotaHeaders } from "./world.ts";

const caller = { priority: "caller" } as const;
const page = (count: number, from = 1) => Array.from({ length: count }, (_, index) => ({ id: from + index }));

test.each([301, 302, 307, 308])("%i is an answer and not followed", async (status) => {
  await using world = await openUpstreamWorld((_, response) =>
    json(
      response,
      status,
      { message: "Moved Permanently" },
      { location: `${world.base}/repositories/7/issues?state=all` },
    ),
  );
  expect(await world.upstream.get("/repos/old/name/issues?state=all", caller)).toEqual({
    kind: "moved",
    location: "/repositories/7/issues?state=all",
  });
  expect(world.asked).toHaveLength(1);
});

test.each([{ location: "" }, {}])(
  "a 301 that does not say where to is gone (%o)",
  async (headers: Record<string, string>) => {
    await using world = await openUpstreamWorld((_, response) =>
      json(response, 301, { message: "Moved Permanently", url: "" }, headers),
    );
    expect(await world.upstream.get("/repos/o/n/issues/1", caller)).toEqual({ kind: "moved", location: null });
  },
);

test.each([
  [404, "Not Found"],
  [410, "This issue was deleted"],
  [451, "Repository access blocked"],
])("%i is an answer", async (status, message) => {
  await using world = await openUpstreamWorld((_, response) => json(response, status, { message }));
  expect(await world.upstream.get("/repos/o/n/issues/1", caller)).toEqual({ kind: "missing", status, message });
});

test("a 404 in HTML is something on the way, and no deletion", async () => {
  await using world = await openUpstreamWorld((_, response) => {
    response.writeHead(404, { "content-type": "text/html" });
    response.end("<html>no such page</html>");
  });
  await expect(world.upstream.get("/repos/o/n/issues/1", caller)).rejects.toMatchObject({
    name: "UpstreamUnavailableError",
    status: 404,
  });
});

test("422 is refused with upstream's message and body", async () => {
  const body = { message: "Validation Failed", errors: [{ resource: "Search", field: "q", code: "missing" }] };
  await using world = await openUpstreamWorld((_, response) => json(response, 422, body));
  const error = await world.upstream.get("/search/issues", caller).catch((reason) => reason);
  expect(error).toBeInstanceOf(UpstreamRefusedError);
  expect(error).toMatchObject({ status: 422, body, message: "Upstream refuses with 422: Validation Failed" });
});

test("a 403 in plain text is refused in its own words", async () => {
  await using world = await openUpstreamWorld((_, response) => {
    response.writeHead(403, { "content-type": "text/html" });
    response.end("Request forbidden by administrative rules. Please make sure your request has a User-Agent header");
  });
  await expect(world.upstream.get("/user", caller)).rejects.toThrow(/403: Request forbidden by administrative rules/);
});

test("502 twice and then an answer is an answer", async () => {
  await using world = await openUpstreamWorld((_, response, count) => {
    if (count > 2) return json(response, 200, { id: 1 });
    response.writeHead(502, { "content-type": "text/html" });
    response.end("<html>Bad gateway</html>");
  });
  expect(await world.upstream.get("/user", caller)).toMatchObject({ kind: "ok", body: { id: 1 } });
});

test("502 three times is enough", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 502, { message: "Server Error" }));
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({
    name: "UpstreamUnavailableError",
    outage: "failed",
    status: 502,
  });
  expect(world.asked).toHaveLength(3);
});

test("500 is not repeated", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 500, { message: "Server Error" }));
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ status: 500 });
  expect(world.asked).toHaveLength(1);
});

test("a connection that breaks is tried again, at most twice", async () => {
  await using world = await openUpstreamWorld((_, response, count) => {
    if (count % 3 !== 0) return void response.socket?.resetAndDestroy();
    json(response, 200, { id: 1 });
  });
  expect(await world.upstream.get("/user", caller)).toMatchObject({ kind: "ok" });
  world.play = (_, response) => void response.socket?.resetAndDestroy();
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({
    name: "UpstreamUnavailableError",
    outage: "interrupted",
  });
  expect(world.asked).toHaveLength(6);
});

test("a body that is cut off is not taken for an answer", async () => {
  await using world = await openUpstreamWorld((_, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    response.write('[{"id":1},');
    setImmediate(() => response.destroy());
  });
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "interrupted" });
  expect(world.asked).toHaveLength(3);
});

test.each([
  ["cut JSON that ends regularly", '[{"id":1},', "application/json"],
  ["HTML", "<html>maintenance</html>", "text/html"],
  ["nothing at all", "", "application/json"],
])("200 with %s is not taken for an answer", async (_, body, type) => {
  await using world = await openUpstreamWorld((_asked, response) => {
    response.writeHead(200, { "content-type": type });
    response.end(body);
  });
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "unreadable", status: 200 });
});

test("a gzipped body is read; one that is cut, or bursts when unpacked, is not", async () => {
  const packed = gzipSync(JSON.stringify(page(1_000)));
  const send = (bytes: Buffer) =>
    (world.play = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(bytes);
    });
  await using world = await openUpstreamWorld(() => {}, { limits: { maxBodyBytes: 100_000 } });
  send(packed);
  expect(await world.upstream.get("/user", caller)).toMatchObject({ body: page(1_000) });
  send(packed.subarray(0, -50));
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "interrupted" });
  send(gzipSync(Buffer.alloc(1_000_000, " ")));
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "unreadable" });
});

test("a body beyond the bound is given up before it fills the memory", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, "x".repeat(200_000)), {
    limits: { maxBodyBytes: 100_000 },
  });
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "unreadable" });
});

test("an answer whose headers are too long is none that can be read", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, {}, { location: `/${"x".repeat(100_000)}` }),
  );
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "unreadable" });
});

test("an answer that never begins, and one that never ends, are given up", async () => {
  await using world = await openUpstreamWorld(() => {}, {
    limits: { headersTimeoutMs: 100, bodyTimeoutMs: 100, totalTimeoutMs: 1_500 },
  });
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "timed-out" });
  world.play = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write("[");
  };
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "timed-out" });
  expect(world.asked).toHaveLength(2);
});

test("an answer that trickles on for ever is given up", async () => {
  await using world = await openUpstreamWorld(
    (_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const timer = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(timer));
    },
    { limits: { bodyTimeoutMs: 1_000, totalTimeoutMs: 200 } },
  );
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "timed-out" });
});

test("an upstream that is not there is unreachable and costs nothing", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, quotaHeaders(100)));
  await world.upstream.get("/user", caller);
  const astray = await world.another({ upstreamUrl: "http://127.0.0.1:1" });
  await expect(astray.get("/user", caller)).rejects.toMatchObject({ outage: "unreachable", status: null });
  expect((await quotaReport(world.ctx))[0]).toMatchObject({ remaining: 100 });
});

import { expect, test } from "vitest";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { pages } from "../../src/upstream/protocol/pagination.ts";
import type { GetOptions, ReadAnswer, Upstream } from "../../src/upstream/protocol/upstream.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { at, json, keepValidator, openUpstreamWorld, quotaHeaders, type UpstreamWorld } from "./world.ts";

const caller = { priority: "caller" } as const;
const conditional = { priority: "catch-up", conditional: true } as const;
const page = (count: number, from = 1) => Array.from({ length: count }, (_, index) => ({ id: from + index }));

/** Asks, and stores nothing but the validator, as a page's transaction does beside its rows. */
async function getAndSave(
  world: UpstreamWorld,
  path: string,
  options: GetOptions = caller,
  upstream: Upstream = world.upstream,
): Promise<ReadAnswer> {
  const answer = await upstream.get(path, options);
  if (answer.kind === "ok" && answer.validator) await keepValidator(world.ctx.db, answer.validator);
  return answer;
}

test("a page comes with its links as paths, and the validator to ask it again", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, page(2), {
      etag: 'W/"abc"',
      link: `<${world.base}/repositories/7/issues?per_page=2&after=Y3%3D%3D&page=2>; rel="next", <https://docs.github.com/x>; rel="deprecation"; type="text/html"`,
    }),
  );
  expect(await world.upstream.get("/repos/o/n/issues?per_page=2", caller)).toEqual({
    kind: "ok",
    body: page(2),
    seenAt: at(0),
    upstreamNow: at(0),
    asOf: null,
    links: { next: "/repositories/7/issues?per_page=2&after=Y3%3D%3D&page=2" },
    lastModified: null,
    validator: {
      credential: fingerprint("token-one"),
      path: "/repos/o/n/issues?per_page=2",
      etag: 'W/"abc"',
      lastModified: null,
      next: "/repositories/7/issues?per_page=2&after=Y3%3D%3D&page=2",
      isFull: true,
      seenAt: at(0),
      body: null,
      variesBy: null,
      madeFor: null,
      usedAt: at(0),
    },
  });
  expect(world.asked[0]).toMatchObject({
    method: "GET",
    token: "token-one",
    headers: {
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
      "user-agent": expect.stringMatching(/^tain\/\d/),
      "accept-encoding": "gzip",
    },
  });
});

test("seenAt is when the request began by our clock, upstreamNow when it was answered by upstream's", async () => {
  await using world = await openUpstreamWorld((_, response) => {
    world.wait(5_000);
    json(response, 200, {}, { date: at(-60).toUTCString() });
  });
  expect(await world.upstream.get("/user", caller)).toMatchObject({ seenAt: at(0), upstreamNow: at(-60) });
});

test("an unchanged page costs nothing and names the next one as stored", async () => {
  let charged = 0;
  await using world = await openUpstreamWorld(({ headers }, response) => {
    if (headers["if-none-match"] === '"one"') {
      response.writeHead(304, quotaHeaders(5_000 - charged));
      return response.end();
    }
    charged += 1;
    json(response, 200, page(100), {
      ...quotaHeaders(5_000 - charged),
      etag: '"one"',
      link: `<${world.base}/repositories/7/issues?page=2>; rel="next"`,
    });
  });
  await getAndSave(world, "/repos/o/n/issues?per_page=100");
  for (let times = 0; times < 3; times++) {
    expect(await world.upstream.get("/repos/o/n/issues?per_page=100", conditional)).toEqual({
      kind: "unchanged",
      seenAt: at(0),
      upstreamNow: at(0),
      asOf: null,
      next: "/repositories/7/issues?page=2",
    });
  }
  expect((await quotaReport(world.ctx))[0]).toMatchObject({ remaining: 4_999 });
});

test("an unchanged last page that is not full is the last one", async () => {
  await using world = await openUpstreamWorld(({ headers }, response) =>
    headers["if-none-match"] ? response.writeHead(304).end() : json(response, 200, page(99), { etag: '"one"' }),
  );
  await getAndSave(world, "/repos/o/n/labels?per_page=100");
  expect(await world.upstream.get("/repos/o/n/labels?per_page=100", conditional)).toMatchObject({
    kind: "unchanged",
    next: null,
  });
  expect(world.asked).toHaveLength(2);
});

test("a 304 for a full page without a successor is not believed: it may have got one since", async () => {
  await using world = await openUpstreamWorld(({ headers }, response, count) => {
    if (headers["if-none-match"]) return void response.writeHead(304).end();
    json(response, 200, page(30), {
      etag: '"one"',
      ...(count > 1 ? { link: `<${world.base}/repositories/7/issues?page=2>; rel="next"` } : {}),
    });
  });
  // A page that names no size has 30 rows. The cursor of a page to come is upstream's secret.
  await getAndSave(world, "/repos/o/n/issues");
  expect(await world.upstream.get("/repos/o/n/issues", conditional)).toMatchObject({
    kind: "ok",
    links: { next: "/repositories/7/issues?page=2" },
  });
  expect(world.asked.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"one"', undefined]);
});

test("what has no ETag is asked by its Last-Modified", async () => {
  const modified = "Sun, 01 Nov 2026 10:00:00 GMT";
  await using world = await openUpstreamWorld(({ headers }, response) =>
    headers["if-modified-since"] === modified
      ? response.writeHead(304).end()
      : json(response, 200, {}, { "last-modified": modified }),
  );
  await getAndSave(world, "/repos/o/n");
  expect(await world.upstream.get("/repos/o/n", conditional)).toMatchObject({ kind: "unchanged" });
});

test("nothing is asked conditionally before a page was stored, nor for another media type", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, { etag: '"one"' }));
  await world.upstream.get("/repos/o/n", conditional);
  await getAndSave(world, "/repos/o/n", conditional);
  await world.upstream.get("/repos/o/n", { ...conditional, accept: "application/vnd.github.html+json" });
  expect(world.asked.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, undefined, undefined]);
});

test("a 304 that was not asked for is no answer", async () => {
  await using world = await openUpstreamWorld((_, response) => void response.writeHead(304).end());
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ outage: "unreadable", status: 304 });
});

test("a conditional request goes to the token that holds the validator, unless that one is spent", async () => {
  const left: Record<string, number> = { first: 100, second: 4_000 };
  await using world = await openUpstreamWorld(
    ({ token, headers }, response) =>
      headers["if-none-match"] === `"${token}"`
        ? response.writeHead(304, quotaHeaders(left[token] ?? 0)).end()
        : json(response, 200, {}, { ...quotaHeaders(left[token] ?? 0), etag: `"${token}"` }),
    { tokens: ["first", "second"] },
  );
  await getAndSave(world, "/repos/o/n");
  await world.upstream.get("/user", caller);
  expect(await world.upstream.get("/repos/o/n", { ...caller, conditional: true })).toMatchObject({ kind: "unchanged" });
  expect(world.tokens()).toEqual(["first", "second", "first"]);

  left.first = 0;
  await world.upstream.get("/repos/o/n", { ...caller, conditional: true });
  expect(await world.upstream.get("/repos/o/n", { ...caller, conditional: true })).toMatchObject({ kind: "ok" });
  expect(world.asked.at(-1)).toMatchObject({ token: "second" });
  expect(world.asked.at(-1)?.headers["if-none-match"]).toBeUndefined();
});

test("an aborted request ends with the caller's own reason", async () => {
  const abort = new AbortController();
  await using world = await openUpstreamWorld(() => abort.abort(new Error("the job was cancelled")));
  await expect(world.upstream.get("/user", { ...caller, signal: abort.signal })).rejects.toThrow(
    "the job was cancelled",
  );
  await expect(world.upstream.get("/user", { ...caller, signal: abort.signal })).rejects.toThrow(
    "the job was cancelled",
  );
  expect(world.asked).toHaveLength(1);
});

test("a caller does not wait behind a backfill that holds the connections", async () => {
  const held: (() => void)[] = [];
  await using world = await openUpstreamWorld(({ url }, response) => {
    if (url === "/user") return json(response, 200, {});
    held.push(() => json(response, 200, {}));
  });
  // This answer shows that upstream does not meter. Before that, requests go one by one.
  await world.upstream.get("/user", caller);
  const backfill = Array.from({ length: 40 }, (_, index) =>
    world.upstream.get(`/slow/${index}`, { priority: "backfill" }),
  );
  await expect.poll(() => held.length).toBe(14);
  expect(await world.upstream.get("/user", caller)).toMatchObject({ kind: "ok" });
  expect(held).toHaveLength(14);
  world.play = (_, response) => json(response, 200, {});
  for (const release of held) release();
  expect(await Promise.all(backfill)).toHaveLength(40);
});

test("our token goes to no other address", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, page(1), { link: '<https://elsewhere.example/issues?page=2>; rel="next"' }),
  );
  await expect(world.upstream.get("https://elsewhere.example/user", caller)).rejects.toThrow(/not below UPSTREAM_URL/);
  // If the client ignored a link that it cannot follow, the list would end early.
  await expect(world.upstream.get("/repos/o/n/issues", caller)).rejects.toMatchObject({ outage: "unreadable" });
  world.play = (_, response) => json(response, 301, {}, { location: "https://elsewhere.example/repositories/7" });
  expect(await world.upstream.get("/repos/o/n", caller)).toEqual({
    kind: "moved",
    location: "https://elsewhere.example/repositories/7",
  });
});

test("below an enterprise address, paths and links are relative to it", async () => {
  await using world = await openUpstreamWorld(
    (_, response) => json(response, 200, page(1), { link: `<${world.base}/repositories/7/issues?page=2>; rel="next"` }),
    { path: "/api/v3" },
  );
  expect(await world.upstream.get(`${world.base}/repos/o/n/issues?state=all`, caller)).toMatchObject({
    links: { next: "/repositories/7/issues?page=2" },
  });
  expect(world.asked[0]?.url).toBe("/api/v3/repos/o/n/issues?state=all");
});

test("another media type is answered as its text", async () => {
  await using world = await openUpstreamWorld(({ headers }, response) => {
    response.writeHead(200, { "content-type": `${headers.accept}; charset=utf-8` });
    response.end("diff --git a b");
  });
  expect(
    await world.upstream.get("/repos/o/n/pulls/1", { ...caller, accept: "application/vnd.github.diff" }),
  ).toMatchObject({ body: "diff --git a b" });
});

test("a walk goes from page to page, through pages that have not changed, and ends where upstream does", async () => {
  await using world = await openUpstreamWorld(({ url, headers }, response) => {
    const number = Number(new URL(url, world.base).searchParams.get("page") ?? 1);
    if (headers["if-none-match"] === `"${number}"`) return void response.writeHead(304).end();
    const next =
      number < 12 ? { link: `<${world.base}/repositories/7/labels?per_page=2&page=${number + 1}>; rel="next"` } : {};
    json(response, 200, page(number < 12 ? 2 : 1, number * 2), { etag: `"${number}"`, ...next });
  });
  const walk = async () => {
    const kinds: string[] = [];
    for await (const answer of pages(world.upstream, "/repos/o/n/labels?per_page=2", conditional)) {
      kinds.push(answer.kind);
      if (answer.kind === "ok" && answer.validator) await keepValidator(world.ctx.db, answer.validator);
    }
    return kinds;
  };
  expect(await walk()).toEqual(Array(12).fill("ok"));
  expect(await walk()).toEqual(Array(12).fill("unchanged"));
});

test("a walk ends with the page that is missing, and does not go in circles", async () => {
  await using world = await openUpstreamWorld(({ url }, response) =>
    url.includes("page=2")
      ? json(response, 404, { message: "Not Found" })
      : json(response, 200, page(1), { link: `<${world.base}/labels?page=2>; rel="next"` }),
  );
  const kinds: string[] = [];
  for await (const { path, kind } of pages(world.upstream, "/labels", caller)) kinds.push(`${path} ${kind}`);
  expect(kinds).toEqual(["/labels ok", "/labels?page=2 missing"]);
});

test.each([
  ["names itself", "/labels?page=2", "/labels?page=2"],
  ["names itself without a number", "/labels", "/labels?per_page=30"],
  ["names one before it", "/labels?page=3", "/labels?page=1"],
  ["repeats its cursor", "/issues?after=abc", "/issues?after=abc"],
])("a page that %s as the page after it cannot be read, whoever follows its links", async (_what, path, next) => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, page(1), { link: `<${world.base}${next}>; rel="next"` }),
  );
  const unreadable = { name: "UpstreamUnavailableError", outage: "unreadable" };
  await expect(world.upstream.get(path, caller)).rejects.toMatchObject(unreadable);
  await expect(Array.fromAsync(pages(world.upstream, path, caller))).rejects.toThrow(/comes after/);
});

test("a page whose cursor moves on is followed, whatever number it has", async () => {
  await using world = await openUpstreamWorld(({ url }, response) =>
    url.includes("after=b")
      ? json(response, 200, page(1))
      : json(response, 200, page(1), {
          link: `<${world.base}/issues?after=${url.includes("after=a") ? "b" : "a"}&page=2>; rel="next"`,
        }),
  );
  const walked: string[] = [];
  for await (const { path } of pages(world.upstream, "/issues", caller)) walked.push(path);
  expect(walked).toEqual(["/issues", "/issues?after=a&page=2", "/issues?after=b&page=2"]);
});

test("closing waits for what is under way, though not for ever", async () => {
  let answer = () => {};
  await using world = await openUpstreamWorld(
    (_, response) => {
      answer = () => json(response, 200, { id: 1 });
    },
    { env: { SHUTDOWN_TIMEOUT: "400ms" } },
  );
  const patient = world.upstream.get("/user", caller);
  await expect.poll(() => world.asked.length).toBe(1);
  const closed = world.upstream.close();
  answer();
  expect(await patient).toMatchObject({ kind: "ok" });
  await closed;

  const other = await world.another();
  const hanging = expect(other.get("/user", caller)).rejects.toThrow();
  await expect.poll(() => world.asked.length).toBe(2);
  await other.close();
  await hanging;
});

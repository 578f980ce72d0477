import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import {
  findValidators,
  pruneBodies,
  pruneValidators,
  saveValidators,
} from "../../src/upstream/conditional/validators.ts";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { pages } from "../../src/upstream/protocol/pagination.ts";
import type { Upstream } from "../../src/upstream/protocol/upstream.ts";
import { at, json, keepValidator, openUpstreamWorld, type Play, type UpstreamWorld } from "./world.ts";

const conditional = { priority: "audit", conditional: true } as const;

/** A generated world behind a simulated service. The mirror's token may be replaced by another of the same user. */
async function openSimulated(env: NodeJS.ProcessEnv = {}) {
  const tokens = ["one", "two"].map((token) => ({ token, login: "octo", repositories: "all", write: true }) as const);
  const simulator = await openSimulator({ seed: 11, tokens });
  onTestFinished(() => simulator.close());
  generateWorld(simulator.world, { seed: 11, repositories: 1, issues: 250 });
  const world = await openUpstreamWorld(() => {}, { url: simulator.url, tokens: ["one"], env });
  const repository = [...simulator.world.repositories.values()].find(({ fork }) => !fork);
  if (!repository) throw new Error("The generated world has no repository");
  return {
    simulator,
    world,
    below: `/repositories/${repository.id}`,
    charged: () => simulator.meter.read().charged,
    rotate: () => withTokens(world, ["two"]),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

/** A new client of the same mirror, with other tokens. */
function withTokens(world: UpstreamWorld, upstreamTokens: string[]): Promise<Upstream> {
  return world.another({ upstreamTokens });
}

/** Reads a list and stores nothing but validators, as a page's transaction does beside its rows. */
async function walk(world: UpstreamWorld, path: string, upstream = world.upstream): Promise<string[]> {
  const kinds: string[] = [];
  for await (const page of pages(upstream, path, conditional)) {
    kinds.push(page.kind);
    if (page.kind === "ok" && page.validator) await keepValidator(world.ctx.db, page.validator);
  }
  return kinds;
}

/** Answers with ETags that are made as the service makes them. */
function tagged(body: (url: string) => unknown, tagOf = digest): Play {
  return ({ url, headers }, response) => {
    const text = JSON.stringify(body(url));
    const etag = tagOf(`${headers.accept}:${headers.authorization}:${text}`);
    const answered = { etag: `W/"${etag}"`, vary: "Accept, Authorization, Cookie, X-GitHub-OTP" };
    if (headers["if-none-match"]?.replace("W/", "") === `"${etag}"`) return response.writeHead(304, answered).end();
    response.writeHead(200, { ...answered, "content-type": "application/json", "content-encoding": "gzip" });
    response.end(gzipSync(text));
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

test.each([
  ["issues?state=all&sort=created&direction=asc&per_page=100", 4],
  ["issues/comments?per_page=100", undefined],
  ["labels?per_page=100", undefined],
])("%s unchanged costs nothing, also with a token that has never asked for it", async (path, count) => {
  await using simulated = await openSimulated();
  const { world, below, charged, rotate } = simulated;
  const first = await walk(world, `${below}/${path}`);
  if (count) expect(first).toHaveLength(count);
  expect(new Set(first)).toEqual(new Set(["ok"]));
  const before = charged();
  const two = await rotate();
  expect(await walk(world, `${below}/${path}`, two)).toEqual(first.map(() => "unchanged"));
  expect(charged()).toBe(before);
  // The ETag for the second token was computed once, and is stored from then on.
  const [known = new Map()] = await findValidators(world.ctx.db, [`${below}/${path}`]);
  expect(known.get(fingerprint("two"))?.etag).toMatch(/^"[0-9a-f]{64}"$/);
  expect(await walk(world, `${below}/${path}`, two)).toEqual(first.map(() => "unchanged"));
  expect(charged()).toBe(before);
});

test("a full last page is known to be the last for nothing, until a row follows it", async () => {
  await using simulated = await openSimulated();
  const { world, below, charged, rotate } = simulated;
  // The list has 375 rows.
  const path = `${below}/issues?state=all&sort=created&direction=asc&per_page=25`;
  const first = await walk(world, path);
  expect(first).toHaveLength(15);
  const before = charged();
  expect(await walk(world, path)).toEqual(Array(15).fill("unchanged"));
  expect(await walk(world, path, await rotate())).toEqual(Array(15).fill("unchanged"));
  expect(charged()).toBe(before);

  const made = await world.upstream.write({
    method: "POST",
    path: `${below}/issues`,
    body: JSON.stringify({ title: "one more" }),
  });
  expect(made.status).toBe(201);
  expect(await walk(world, path)).toHaveLength(16);
});

test("a list paged by number asks for the page after its full last one", async () => {
  let rows = 60;
  const perPage = 30;
  const play = tagged((url) => {
    const page = Number(new URL(url, "http://x").searchParams.get("page") ?? 1);
    return Array.from({ length: Math.max(0, Math.min(perPage, rows - (page - 1) * perPage)) }, (_, index) => ({
      id: index,
    }));
  });
  await using world = await openUpstreamWorld((asked, response, count) => {
    const page = Number(new URL(asked.url, "http://x").searchParams.get("page") ?? 1);
    if (page * perPage < rows)
      response.setHeader("link", `<${world.base}/labels?per_page=30&page=${page + 1}>; rel="next"`);
    return play(asked, response, count);
  });
  expect(await walk(world, "/labels?per_page=30")).toEqual(["ok", "ok"]);
  world.asked.length = 0;
  expect(await walk(world, "/labels?per_page=30")).toEqual(["unchanged", "unchanged"]);
  expect(world.asked.map(({ url }) => url)).toEqual([
    "/labels?per_page=30",
    "/labels?per_page=30&page=2",
    "/labels?per_page=30&page=3",
  ]);
  rows = 61;
  expect(await walk(world, "/labels?per_page=30")).toEqual(["unchanged", "unchanged", "ok"]);
});

test("an empty list is free on first sight", async () => {
  await using simulated = await openSimulated();
  const { world, below, charged, simulator } = simulated;
  const path = `${below}/issues?state=all&sort=created&direction=asc&per_page=100&since=2999-01-01T00:00:00Z`;
  const answer = await world.upstream.get(path, conditional);
  expect(answer).toMatchObject({ kind: "ok", body: [], links: {}, validator: { path, isFull: false, next: null } });
  expect(charged()).toBe(0);
  if (answer.kind === "ok" && answer.validator) await keepValidator(world.ctx.db, answer.validator);
  expect(await world.upstream.get(path, conditional)).toMatchObject({ kind: "unchanged", next: null });
  expect(simulator.meter.read()).toMatchObject({ charged: 0, notModified: 2 });
});

test("without stored pages, another token asks by the date where there is one, and pages are not kept", async () => {
  await using simulated = await openSimulated({ ETAG_PAGES_SIZE: "0" });
  const { world, below, charged, rotate } = simulated;
  const labels = `${below}/labels?per_page=100`;
  await walk(world, below);
  await walk(world, labels);
  const before = charged();
  const two = await rotate();
  expect(await walk(world, below, two)).toEqual(["unchanged"]);
  expect(charged()).toBe(before);
  expect(await walk(world, labels, two)).toEqual(["ok"]);
  const rows = await world.ctx.db.query(sql`select count(body)::int as kept from validators`);
  expect(rows[0]).toEqual({ kept: 0 });
});

test("another token that has a changed page gets it", async () => {
  let title = "first";
  await using world = await openUpstreamWorld(
    tagged(() => [{ id: 1, title }]),
    { tokens: ["one"] },
  );
  await walk(world, "/labels?per_page=100");
  title = "second";
  const two = await withTokens(world, ["two"]);
  expect(await two.get("/labels?per_page=100", conditional)).toMatchObject({ kind: "ok", body: [{ id: 1, title }] });
});

test("a page that went back to what another token once saw is read again", async () => {
  let title = "first";
  await using world = await openUpstreamWorld(
    tagged(() => [{ id: 1, title }]),
    { tokens: ["one"] },
  );
  await walk(world, "/labels?per_page=100");
  title = "second";
  world.wait(1_000);
  const two = await withTokens(world, ["two"]);
  expect(await walk(world, "/labels?per_page=100", two)).toEqual(["ok"]);
  title = "first";
  world.wait(1_000);
  // The first client's own validator stands for the first page, but the stored page is the second one. So the client
  // has to read the page.
  expect(await walk(world, "/labels?per_page=100")).toEqual(["ok"]);
});

test("a route whose ETags are made otherwise is noticed by its first answer, and asked plainly", async () => {
  await using world = await openUpstreamWorld(
    tagged(
      () => [{ id: 1 }],
      (text) => digest(`salt${text}`),
    ),
    {
      tokens: ["one"],
    },
  );
  await walk(world, "/repositories/7/labels?per_page=100");
  const rows = await world.ctx.db.query(sql`select count(body)::int as kept from validators`);
  expect(rows[0]).toEqual({ kept: 0 });
  expect(world.asked.map(({ headers }) => headers["if-none-match"] !== undefined)).toEqual([true]);
  // The client does not predict ETags for other lists of this kind either. With their own validators pages are still
  // free.
  await walk(world, "/repositories/8/labels?per_page=100");
  expect(world.asked.at(-1)?.headers["if-none-match"]).toBeUndefined();
  expect(await walk(world, "/repositories/7/labels?per_page=100")).toEqual(["unchanged"]);
});

test("a route whose ETags change their ways is given up when a prediction fails", async () => {
  await using world = await openUpstreamWorld(
    tagged(() => [{ id: 1 }]),
    { tokens: ["one"] },
  );
  await walk(world, "/labels?per_page=100");
  world.play = tagged(
    () => [{ id: 1 }],
    (text) => digest(`salt${text}`),
  );
  const two = await withTokens(world, ["two"]);
  expect(await two.get("/labels?per_page=100", conditional)).toMatchObject({ kind: "ok" });
  expect(world.asked.at(-1)?.headers["if-none-match"]).toMatch(/^"[0-9a-f]{64}"$/);
  expect(await two.get("/labels?per_page=100", conditional)).toMatchObject({ kind: "ok" });
  expect(world.asked.at(-1)?.headers["if-none-match"]).toBeUndefined();
});

test("a 304 for the first page says nothing of the second", async () => {
  let second = [{ id: 2, title: "two" }];
  const play = tagged((url) => (url.includes("page=2") ? second : [{ id: 1 }]));
  await using world = await openUpstreamWorld((asked, response, count) => {
    if (!asked.url.includes("page=2")) response.setHeader("link", `<${world.base}/labels?page=2>; rel="next"`);
    return play(asked, response, count);
  });
  await walk(world, "/labels");
  second = [{ id: 2, title: "changed" }];
  expect(await walk(world, "/labels")).toEqual(["unchanged", "ok"]);
});

test("a 304 of a replica that lags behind is no more than that: the next request sees the change", async () => {
  await using simulated = await openSimulated();
  const { world, simulator, below } = simulated;
  const path = `${below}/labels?per_page=100`;
  await walk(world, path);
  simulator.setFaults({ lagMs: 600_000 });
  const made = await world.upstream.write({
    method: "POST",
    path: `${below}/labels`,
    body: JSON.stringify({ name: "brand new", color: "ff0000" }),
  });
  expect(made.status).toBe(201);
  expect(await walk(world, path)).toEqual(["unchanged"]);
  (simulator.world.clock as SettableClock).advance(600_000);
  expect(await walk(world, path)).toEqual(["ok"]);
});

test("an older answer does not replace the validator of a newer one", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}));
  const { db } = world.ctx;
  const page = {
    path: "/labels",
    lastModified: null,
    next: null,
    isFull: false,
    body: null,
    variesBy: null,
    usedAt: at(0),
    madeFor: null,
  };
  await keepValidator(db, { ...page, credential: "one", etag: '"new"', seenAt: at(2) });
  await keepValidator(db, { ...page, credential: "one", etag: '"old"', seenAt: at(1) });
  await keepValidator(db, { ...page, credential: "two", etag: '"older"', seenAt: at(0) });
  const [known = new Map()] = await findValidators(db, ["/labels"]);
  expect([...known.values()]).toMatchObject([{ credential: "one", etag: '"new"' }]);
});

test("validators of several pages are kept as if they were saved one after another", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}));
  const { db } = world.ctx;
  const page = { next: "/more", isFull: true, variesBy: "accept", usedAt: at(0), madeFor: "one" };
  const saved = [
    {
      ...page,
      path: "/a",
      credential: "one",
      etag: '"a"',
      lastModified: null,
      seenAt: at(1),
      body: Buffer.from([0, 255]),
    },
    { ...page, path: "/b", credential: "one", etag: null, lastModified: "then", seenAt: at(1), body: null },
    { ...page, path: "/a", credential: "two", etag: '"newer"', lastModified: null, seenAt: at(2), body: Buffer.of(92) },
    { ...page, path: "/c", credential: "two", etag: '"old"', lastModified: null, seenAt: at(0), body: null },
  ];
  const keptAfter = async (save: () => Promise<void>) => {
    await db.query(sql`delete from validators`);
    for (const path of ["/a", "/b", "/c"]) {
      const before = { path, credential: "two", etag: '"before"', lastModified: null, seenAt: at(1), body: null };
      await keepValidator(db, { ...page, ...before });
    }
    await save();
    return await db.query(sql`select * from validators order by path, credential`);
  };
  const inTurn = await keptAfter(async () => {
    for (const one of saved) await keepValidator(db, one);
  });
  expect(inTurn).toHaveLength(3);
  expect(await keptAfter(() => db.transaction((tx) => saveValidators(tx, saved)))).toEqual(inTurn);
  expect(await keptAfter(() => db.transaction((tx) => saveValidators(tx, saved.toReversed())))).toEqual(inTurn);
});

test("validators that are of no use for a month are dropped, those in use stay, with the page's body", async () => {
  await using world = await openUpstreamWorld(
    tagged((url) => [{ url }]),
    { tokens: ["one"] },
  );
  await walk(world, "/used?per_page=100");
  await walk(world, "/idle?per_page=100");
  const two = await withTokens(world, ["two"]);
  world.wait(20 * 86_400_000);
  await two.get("/used?per_page=100", conditional);
  expect(await pruneValidators(world.ctx)).toBe(0);
  world.wait(11 * 86_400_000);
  expect(await pruneValidators(world.ctx)).toBe(1);
  const rows = await world.ctx.db.query(sql`
    select path, credential, body is not null as kept from validators order by kept desc`);
  expect(rows).toEqual([
    { path: "/used?per_page=100", credential: fingerprint("one"), kept: true },
    { path: "/used?per_page=100", credential: fingerprint("two"), kept: false },
  ]);
  // A third token profits from this.
  const three = await withTokens(world, ["three"]);
  expect(await three.get("/used?per_page=100", conditional)).toMatchObject({ kind: "unchanged" });
});

test("pages that take more room than they may go, those first that were of no use for longest; their validators stay", async () => {
  await using world = await openUpstreamWorld(
    tagged((url) => [{ url }]),
    { tokens: ["one"] },
  );
  for (const path of ["/oldest?per_page=100", "/older?per_page=100", "/newest?per_page=100"]) {
    await walk(world, path);
    world.wait(86_400_000);
  }
  const rows = await world.ctx.db.query<{ total: number }>(sql`
    select sum(octet_length(body))::int as total from validators`);
  const total = rows[0]?.total ?? 0;
  const kept = async (validatorBodiesBytes: number) => {
    const config = { ...world.ctx.config, validatorBodiesBytes };
    const pruned = await pruneBodies({ db: world.ctx.db, config });
    const left = await world.ctx.db.query<{ path: string }>(sql`
      select path from validators where body is not null order by path`);
    return { pruned, left: left.map(({ path }) => path.slice(1, path.indexOf("?"))) };
  };
  expect(await kept(total)).toEqual({ pruned: 0, left: ["newest", "older", "oldest"] });
  expect(await kept(total - 1)).toEqual({ pruned: 1, left: ["newest", "older"] });
  expect(await kept(1)).toEqual({ pruned: 2, left: [] });
  // The token of the page still asks for nothing. Another token pays the full price once.
  expect(await world.upstream.get("/oldest?per_page=100", conditional)).toMatchObject({ kind: "unchanged" });
  const two = await withTokens(world, ["two"]);
  expect(await two.get("/oldest?per_page=100", conditional)).toMatchObject({ kind: "ok" });
});

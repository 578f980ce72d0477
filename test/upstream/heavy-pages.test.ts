import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { pages } from "../../src/upstream/protocol/pagination.ts";
import { json, openUpstreamWorld, type Play, quotaHeaders } from "./world.ts";

const backfill = { priority: "backfill" } as const;
const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, at) => first + at);
const idsIn = (body: unknown) => (body as { id: number }[]).map(({ id }) => id);

/** A list by number of 230 rows, of which upstream can show `most` at once. */
function heavyList(most: number, rows = () => idsFrom(1, 230)): Play {
  return (asked, response) => {
    const url = new URL(asked.url, "http://upstream");
    const [size, page] = ["per_page", "page"].map((name) => Number(url.searchParams.get(name) ?? 1)) as [
      number,
      number,
    ];
    if (size > most) return json(response, 502, "<html>", quotaHeaders(4_000));
    const all = rows();
    const link = (relation: string, number: number) => {
      url.searchParams.set("page", String(number));
      return `<http://${asked.headers.host}${url.pathname}${url.search}>; rel="${relation}"`;
    };
    const last = Math.ceil(all.length / size);
    const links = [
      ...(page > 1 ? [link("prev", page - 1), link("first", 1)] : []),
      ...(page < last ? [link("next", page + 1), link("last", last)] : []),
    ];
    const shown = all.slice((page - 1) * size, page * size).map((id) => ({ id }));
    const headers = { ...quotaHeaders(4_000), etag: `"${size}-${page}-${all.length}"` };
    json(response, 200, shown, { ...headers, ...(links.length > 0 && { link: links.join(", ") }) });
  };
}

const LIST = "/repositories/7/pulls/comments?sort=created&per_page=100";

test.each([50, 25, 3, 1])(
  "a list of which upstream shows %i rows at once is read whole, page by page",
  async (most) => {
    await using world = await openUpstreamWorld(heavyList(most));
    const read: { path: string; ids: number[] }[] = [];
    for await (const page of pages(world.upstream, LIST, backfill))
      read.push({ path: page.path, ids: page.kind === "ok" ? idsIn(page.body) : [] });
    expect(read).toEqual([
      { path: LIST, ids: idsFrom(1, 100) },
      { path: `${LIST}&page=2`, ids: idsFrom(101, 100) },
      { path: `${LIST}&page=3`, ids: idsFrom(201, 30) },
    ]);
  },
);

test.each<[string, (response: ServerResponse) => void]>([
  ["503", (response) => json(response, 503, "<html>", quotaHeaders(4_000))],
  ["500", (response) => json(response, 500, { message: "Server Error" }, quotaHeaders(4_000))],
  ["a connection that breaks off", (response) => response.destroy()],
  ["JSON that is cut off", (response) => response.end('[{"id": 1')],
  ["a page of HTML", (response) => response.end("<html>")],
])("a page may be too heavy where upstream answers %s", async (_, refuse) => {
  const play = heavyList(100);
  await using world = await openUpstreamWorld((asked, response, count) => {
    if (/per_page=(?:[6-9]\d|100)/.test(asked.url)) return refuse(response);
    play(asked, response, count);
  });
  const answer = await world.upstream.get(LIST, backfill);
  expect(answer.kind === "ok" && idsIn(answer.body)).toEqual(idsFrom(1, 100));
});

test("the links of a page that was read in parts are the whole page's", async () => {
  await using world = await openUpstreamWorld(heavyList(20));
  expect(await world.upstream.get(`${LIST}&page=2`, backfill)).toMatchObject({
    links: { prev: `${LIST}&page=1`, next: `${LIST}&page=3`, first: `${LIST}&page=1`, last: `${LIST}&page=3` },
    validator: null,
  });
});

test("every process knows the size that upstream bears, for the lists of that kind alone", async () => {
  await using world = await openUpstreamWorld(heavyList(50));
  await world.upstream.get(LIST, backfill);
  world.asked.length = 0;
  const another = await world.another();
  await another.get(LIST, backfill);
  expect(world.asked.map(({ url }) => url)).toEqual([
    "/repositories/7/pulls/comments?sort=created&per_page=50",
    "/repositories/7/pulls/comments?sort=created&per_page=50&page=2",
  ]);
  world.play = (_, response) => json(response, 200, [{ id: 1 }], quotaHeaders(4_000));
  world.asked.length = 0;
  await another.get("/repositories/7/issues/comments?per_page=100", backfill);
  expect(world.asked.map(({ url }) => url)).toEqual(["/repositories/7/issues/comments?per_page=100"]);
});

test("a short list costs one request at any size, and nothing while it is unchanged", async () => {
  let rows = idsFrom(1, 230);
  await using world = await openUpstreamWorld(heavyList(50, () => rows));
  await world.upstream.get(LIST, backfill);
  rows = idsFrom(1, 20);
  world.asked.length = 0;
  expect(await world.upstream.get(LIST, { ...backfill, conditional: true })).toMatchObject({
    kind: "ok",
    links: {},
    validator: { path: "/repositories/7/pulls/comments?sort=created&per_page=50" },
  });
  expect(world.asked).toHaveLength(1);
});

test("upstream that answers not even a row is away: nothing is learnt, and nothing smaller is asked for", async () => {
  await using world = await openUpstreamWorld(heavyList(0));
  const away = { name: "UpstreamUnavailableError", status: 502 };
  await expect(world.upstream.get(LIST, backfill)).rejects.toMatchObject(away);
  const single = LIST.replace("100", "1");
  expect(new Set(world.asked.map(({ url }) => url))).toEqual(new Set([LIST, single, `${single}&page=2`]));
  world.play = heavyList(100);
  world.asked.length = 0;
  await world.upstream.get(LIST, backfill);
  expect(world.asked.map(({ url }) => url)).toEqual([LIST]);
});

test.each([1, 2, 37, 100, 101, 163, 230])(
  "row %i, which upstream cannot show even alone, is null in its place, and all others are read",
  async (odd) => {
    const play = heavyList(100);
    await using world = await openUpstreamWorld((asked, response, count) => {
      const { searchParams } = new URL(asked.url, "http://upstream");
      const [size, page] = [Number(searchParams.get("per_page")), Number(searchParams.get("page") ?? 1)];
      const isOn = odd > (page - 1) * size && odd <= page * size;
      return isOn
        ? json(response, 500, { message: "Server Error" }, quotaHeaders(4_000))
        : play(asked, response, count);
    });
    const rows: (number | null)[] = [];
    for await (const page of pages(world.upstream, LIST, backfill))
      if (page.kind === "ok") rows.push(...(page.body as ({ id: number } | null)[]).map((row) => row?.id ?? null));
    expect(rows).toEqual(idsFrom(1, 230).map((id) => (id === odd ? null : id)));
  },
);

test("whoever waits for a page is told at once that it fails", async () => {
  await using world = await openUpstreamWorld(heavyList(50));
  await expect(world.upstream.get(LIST, { priority: "caller" })).rejects.toMatchObject({ status: 502 });
  expect(new Set(world.asked.map(({ url }) => url))).toEqual(new Set([LIST]));
});

test("a row that leaves its place between two parts hides no other", async () => {
  let rows = idsFrom(1, 100);
  const play = heavyList(50, () => rows);
  await using world = await openUpstreamWorld((asked, response, count) => {
    play(asked, response, count);
    // The first row changes: in the order of changes it goes to the end.
    if (asked.url.includes("per_page=50") && rows[0] === 1) rows = [...rows.slice(1), 1];
  });
  const answer = await world.upstream.get(
    `/repositories/7/issues/comments?sort=updated&direction=asc&per_page=100`,
    backfill,
  );
  expect(answer.kind === "ok" && new Set(idsIn(answer.body))).toEqual(new Set(idsFrom(1, 100)));
});

test("a page by cursor follows the cursors of its parts", async () => {
  await using world = await openUpstreamWorld((asked, response) => {
    const url = new URL(asked.url, "http://upstream");
    const [size, after] = ["per_page", "after"].map((name) => Number(url.searchParams.get(name))) as [number, number];
    if (size > 30) return json(response, 504, {}, quotaHeaders(4_000));
    url.searchParams.set("after", String(after + size));
    const link = `<http://${asked.headers.host}${url.pathname}${url.search}>; rel="next"`;
    json(
      response,
      200,
      idsFrom(after + 1, size).map((id) => ({ id })),
      { ...quotaHeaders(4_000), link },
    );
  });
  const path = "/repositories/7/issues?per_page=100&after=1000";
  expect(await world.upstream.get(path, backfill)).toMatchObject({
    body: idsFrom(1_001, 100).map((id) => ({ id })),
    links: { next: "/repositories/7/issues?per_page=100&after=1100" },
  });
});

test("a list inside an object is joined as well", async () => {
  await using world = await openUpstreamWorld((asked, response) => {
    const url = new URL(asked.url, "http://upstream");
    const [size, page] = ["per_page", "page"].map((name) => Number(url.searchParams.get(name) ?? 1)) as [
      number,
      number,
    ];
    if (size > 50) return json(response, 502, {}, quotaHeaders(4_000));
    const check_runs = idsFrom((page - 1) * size + 1, Math.min(size, 70 - (page - 1) * size)).map((id) => ({ id }));
    const link = `<http://${asked.headers.host}${url.pathname}?per_page=${size}&page=2>; rel="next"`;
    json(response, 200, { total_count: 70, check_runs }, { ...quotaHeaders(4_000), ...(page === 1 && { link }) });
  });
  const path = `/repositories/7/commits/${"a".repeat(40)}/check-runs?per_page=100`;
  expect(await world.upstream.get(path, backfill)).toMatchObject({
    body: { total_count: 70, check_runs: idsFrom(1, 70).map((id) => ({ id })) },
    links: {},
  });
});

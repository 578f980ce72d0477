import { afterAll, beforeAll, expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { askAt } from "../support/asking.ts";
import { eventually } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainOn } from "./tain-on.ts";

// What callers asked, where their answers came from, and what upstream did not charge them for it.

const THEIRS = "ghp_of_a_person";
let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 4, repositories: 1, issues: 12 }),
  });
  await world.mirror(world.first);
  world.simulator.tokens.create({ token: THEIRS, login: "person", repositories: "all" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const ask = (
  path: string,
  token: string | null,
  { method = "GET", body, etag, accept }: { method?: string; body?: string; etag?: string; accept?: string } = {},
) =>
  askAt(world.url, method, path, {
    token,
    ...(body === undefined ? {} : { body }),
    headers: { ...(etag !== undefined && { "if-none-match": etag }), ...(accept !== undefined && { accept }) },
  });

test("each caller's answers are told by where they came from, and what each was spared", async () => {
  const at = `/repos/${world.first}`;
  // One page is made, then kept, then answered again. The 304s follow: upstream charges nobody for those either.
  let etag = "";
  for (let time = 0; time < 5; time++) etag = (await ask(`${at}/labels`, THEIRS)).headers.get("etag") ?? "";
  for (let time = 0; time < 3; time++) expect((await ask(`${at}/labels`, THEIRS, { etag })).status).toBe(304);
  expect((await ask(`${at}/issues/99999`, THEIRS)).status).toBe(404);
  // A forwarded request spares nothing. Nor does one that is refused here, or that is free at upstream.
  expect((await ask(`${at}/stargazers`, THEIRS)).headers.get("x-tain-passed-through")).not.toBeNull();
  await ask(`${at}/labels?fresh=true`, THEIRS);
  await ask("/rate_limit", THEIRS);
  expect((await ask("/-/events", THEIRS, { method: "HEAD", accept: "application/x-ndjson" })).status).toBe(200);
  await ask(`${at}/issues`, THEIRS, { method: "POST", body: '{"title":"One more"}' });
  const [owner = "", name = ""] = world.first.split("/");
  const body = JSON.stringify({
    query: `{ repository(owner: "${owner}", name: "${name}") { issues(first: 100) { nodes { labels(first: 100) { nodes { name } } } } } }`,
  });
  for (let time = 0; time < 3; time++) await ask("/graphql", THEIRS, { method: "POST", body });
  await ask(`${at}/labels`, world.token);
  await ask(`${at}/labels`, null);
  await ask(`${at}/labels`, "ghp_nobodys");
  await eventually(async () => {
    const { json } = await tainOn(world, ["quota", "--json"]);
    const of = (who: string) => json.asked.find((one: { who: string }) => one.who === who);
    const theirs = of("person");
    expect(theirs).toMatchObject({ asked: 17, spared: { requests: 6, points: 3 } });
    expect(theirs.answers).toMatchObject({ cache: 0, forwarded: 2 });
    expect(theirs.answers.kept).toBeGreaterThan(0);
    expect(of("mirror-owner")).toMatchObject({ asked: 1, spared: { requests: 1, points: 0 } });
    expect(of("callers without a token")).toMatchObject({ asked: 1 });
    expect(json.asked).toHaveLength(3);
    expect(json.asked[0].who).toBe("person");
  });
  const { stdout } = await tainOn(world, ["quota", "--limit", "1"]);
  expect(stdout).toMatch(
    /^ASKED WITHIN AN HOUR BY +IN ALL +MIRROR +CACHE +FORWARDED +REQUESTS SPARED +POINTS SPARED$/m,
  );
  expect(stdout).toMatch(/^person +17 +15 +0 +2 +6 +3$/m);
  expect(stdout).not.toContain("callers without a token");
});

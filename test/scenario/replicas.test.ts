/** Several web processes whose reads go to replicas: each shows every change from the moment on at which it is committed. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ReplicaStanding } from "../../db/replica.ts";
import { sql } from "../../db/sql.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { observe } from "../../src/mirror/store/observation.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { eventually } from "../support/patience.ts";
import { openReplicated, type Replicated } from "../support/replicas.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** `CHANGES=10000 npm test -- test/scenario/replicas.test.ts` makes more of them. */
const CHANGES = Number(process.env.CHANGES ?? 40);
const PROCESSES = 4;
const OPERATOR_TOKEN = "operator-token-of-this-test";
const asOperator = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };

let servers: Replicated;
beforeAll(async () => {
  servers = await openReplicated({ replicas: 2 });
}, 120_000);
afterAll(() => servers?.[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: bodies are compared, not trusted
type Body = any;

/** A mirror of one repository, and the addresses of its web processes. */
async function openProcesses(): Promise<{ world: TestWorld; urls: string[] }> {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 5, pulls: 2 }),
    env: {
      DATABASE_URL: servers.primary.url,
      DATABASE_REPLICA_URLS: servers.replicas.map(({ url }) => url).join(","),
      OPERATOR_TOKEN,
      RATE_LIMIT_USER: "0",
    },
  });
  await world.mirror(world.first);
  const urls: string[] = [];
  for (let at = 0; at < PROCESSES; at++) urls.push(await world.openSibling());
  for (const url of urls)
    await eventually(async () => expect((await standingsOf(url)).map(({ leftOut }) => leftOut)).toEqual([null, null]));
  return { world, urls };
}

async function standingsOf(url: string): Promise<ReplicaStanding[]> {
  return ((await (await fetch(`${url}/-/status`, asOperator)).json()) as { replicas: ReplicaStanding[] }).replicas;
}

/** How many statements of reads this server has answered for this process. */
async function answeredBy(url: string, server: string): Promise<number> {
  const text = await (await fetch(`${url}/-/metrics`, asOperator)).text();
  const found = text.matchAll(/^tain_read_statements_total\{by="([^"]+)"\} (\d+)/gm);
  return Number(new Map(Array.from(found, ([, by, count]) => [by, count])).get(server) ?? 0);
}

/** Changes the title of the repository's first issue, as a worker that applies a delivery does. */
async function openRetitling({ ctx, simulator, first }: TestWorld): Promise<(title: string) => Promise<void>> {
  const address = `${simulator.url}/repos/${first}/issues/1`;
  const headers = { authorization: `token ${UPSTREAM_TOKEN}`, "user-agent": "test" };
  const document = (await (await fetch(address, { headers })).json()) as Body;
  const [home] = await ctx.db.query<{ id: number }>(sql`select id::float8 as id from repositories`);
  const repository = { id: home?.id ?? 0, fullName: first, htmlUrl: document.html_url.replace(/\/issues\/1$/, "") };
  let updatedMs = Date.now();
  return async (title) => {
    updatedMs += 1_000;
    const changed = { ...document, title, updated_at: `${new Date(updatedMs).toISOString().slice(0, 19)}Z` };
    const at = { api: simulator.url, repository, seenAt: new Date(updatedMs), read: false };
    await ctx.db.transaction((tx) => mergeObserved(tx, observe("issue", changed, at)));
  };
}

const nameOf = (url = "") => new URL(url).host + new URL(url).pathname;

test("each change is shown by the next read of any process, while one of two replicas is five seconds behind", async () => {
  const opened = await openProcesses();
  await using world = opened.world;
  const { urls } = opened;
  const retitle = await openRetitling(world);
  const [near, far] = servers.replicas;
  const headers = { authorization: `token ${world.token}`, "user-agent": "test" };
  const issue = `/repos/${world.first}/issues/1`;
  // A list is kept from the second time on.
  const paths = [issue, `/repos/${world.first}/issues?state=all&sort=updated&per_page=3`];
  const wrong: string[] = [];
  let slowestMs = 0;
  const read = async (at: number, path: string, title: string) => {
    const begun = performance.now();
    const answer = await fetch(`${urls[at % PROCESSES]}${path}`, { headers });
    const body = (await answer.json()) as Body;
    slowestMs = Math.max(slowestMs, performance.now() - begun);
    const shown = Array.isArray(body) ? body.find(({ number }) => number === 1)?.title : body.title;
    if (!answer.ok || shown !== title) wrong.push(`${at}: ${path} shows ${shown} (${answer.status})`);
  };
  await far?.set("recovery_min_apply_delay", "5s");
  try {
    for (let at = 0; at < CHANGES; at++) {
      const title = `title ${at}`;
      await retitle(title);
      await Promise.all(paths.map((path, which) => read(at + which, path, title)));
      await Promise.all(paths.map((path, which) => read(at + which, path, title)));
    }
    const standings = await standingsOf(urls[0] ?? "");
    expect(standings).toMatchObject([
      { name: nameOf(near?.url), leftOut: null },
      { name: nameOf(far?.url), leftOut: expect.stringContaining("did not catch up") },
    ]);
    expect(await (await fetch(`${urls[0]}/-/ready`, asOperator)).json()).toMatchObject({
      ready: true,
      replicasLeftOut: [expect.stringContaining("did not catch up")],
    });
    expect(await (await fetch(`${urls[0]}/-/ready`)).json()).toEqual({ ready: true });
  } finally {
    await far?.set("recovery_min_apply_delay", "0");
  }
  const of = async (server: string) =>
    (await Promise.all(urls.map((url) => answeredBy(url, server)))).reduce((sum, count) => sum + count, 0);
  const [byReplica, byPrimary] = [await of(nameOf(near?.url)), await of("primary")];
  const figures = { changes: CHANGES, reads: 4 * CHANGES, wrong: wrong.length, slowestMs: Math.round(slowestMs) };
  printFigures("replicas", { ...figures, byReplica, byPrimary });
  expect(wrong).toEqual([]);
  expect(byReplica).toBeGreaterThan(byPrimary);
}, 3_600_000);

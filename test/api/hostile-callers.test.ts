import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const SHARE = 6;
const TIMES = 25;

let world: ApiWorld;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({
    repositories: 2,
    issues: 40,
    env: { UPSTREAM_READS: `${SHARE}`, UPSTREAM_READS_PER_CALLER: "4", FAILED_LOGINS: "10" },
  });
  repo = `/repos/${world.repositories.find((one) => !one.private)?.fullName}`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** What upstream says is left of the mirror's own quota. */
async function left(): Promise<{ core: number; graphql: number }> {
  const state = async (bucket: string) => {
    const answer = await fetch(`${world.upstream.url}/-/quota`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token: UPSTREAM_TOKEN, bucket }),
    });
    return ((await answer.json()) as { remaining: number }).remaining;
  };
  return { core: await state("core"), graphql: await state("graphql") };
}

/** Writes of all sorts by a token of Tain's, and refreshes as the workers make them. */
async function work(name: string): Promise<void> {
  const issue = await world.send("POST", `${repo}/issues`, { body: JSON.stringify({ title: name }) });
  expect(issue.status).toBe(201);
  const at = `${repo}/issues/${issue.body.number}`;
  expect((await world.send("PUT", `${at}/labels`, { body: '{"labels":[]}' })).status).toBe(200);
  expect((await world.send("PATCH", at, { body: '{"state":"closed"}' })).status).toBe(200);
  for (const path of [repo, at, `${repo}/labels?per_page=1&for=${name}`])
    expect((await world.ctx.upstream.get(path, { priority: "refresh" })).kind).toBe("ok");
}

const FORK = `mutation($id: ID!, $fork: ID!) { createPullRequest(input: {repositoryId: $id, title: "t", baseRefName: "main",
  headRefName: "x", headRepositoryId: $fork}) { pullRequest { number } } }`;

async function attack(): Promise<void> {
  const { body: home } = await world.get(repo);
  const graphql = (token: string, query: string, variables: object = {}) =>
    askAt(world.url, "POST", "/graphql", { token, body: JSON.stringify({ query, variables }) });
  const own = await Promise.all(
    [true, false, false].map((canWrite) =>
      createApiToken(world.ctx, { userId: world.userId, canWrite, hourlyLimit: 1_000 }),
    ),
  );
  const outsider = world.upstream.tokens.create({ login: "outsider" }).value;
  for (let at = 1; at <= TIMES; at++) {
    const fork = `R_${Buffer.from([0x92, 0x00, 0xce, 0x3b, 0x9a, 0xca, at]).toString("base64url")}`;
    const token = `ghp_${randomBytes(18).toString("hex")}`;
    await Promise.all([
      // No page comes twice: a page that upstream confirms is free, and would make the attack cheaper.
      ...own.map((each, of) =>
        askAt(world.url, "GET", `${repo}/labels?per_page=${3 * at + of}&fresh=true&junk=${at}`, { token: each }),
      ),
      askAt(world.url, "GET", `${repo}/issues?per_page=${at}&fresh=true`, { token: outsider }),
      askAt(world.url, "PATCH", `${repo}/issues/${at}`, { token: outsider, body: '{"title":"Mine"}' }),
      askAt(world.url, "GET", `/users/${repo.split("/")[2]}?fresh=true`, { token: null }),
      graphql(own[0] ?? "", FORK, { id: home.node_id, fork }),
      graphql(outsider, FORK, { id: home.node_id, fork }),
      askAt(world.url, "GET", "/versions", { token }),
      graphql(token, "{ viewer { login } }"),
    ]);
  }
}

test("whatever callers do, what is left for refreshes and writes is what it would be without them, less the share", async () => {
  // What is asked for the first time costs more.
  await work("first");
  const start = await left();
  await work("alone");
  const calm = await left();
  await world.ctx.db.query(sql`delete from refresh_marks`);
  await Promise.all([attack(), work("attacked")]);
  const end = await left();
  const [marks] = await world.ctx.db.query<{ count: number }>(sql`select count(*)::int from refresh_marks`);
  const costOfWork = start.core - calm.core;
  const figures = { share: SHARE, costOfWork, costUnderAttack: calm.core - end.core, doubts: marks?.count };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  expect(costOfWork).toBeGreaterThan(5);
  expect(calm.core - end.core).toBe(costOfWork + SHARE);
  expect(end.graphql).toBe(calm.graphql);
  // The share is spent now, so a second attack costs nothing.
  await attack();
  expect(await left()).toEqual(end);
});

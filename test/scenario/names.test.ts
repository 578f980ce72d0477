import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { NAME_AGE_MS } from "../../src/mirror/store/names.ts";
import { createIssue } from "../../src/simulator/changes/issues.ts";
import { editUser } from "../../src/simulator/changes/users.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Repository, User } from "../../src/simulator/world/records.ts";
import { fetchAndStoreNames } from "../../src/sync/people/names.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { OWNER, UPSTREAM_TOKEN } from "../support/config.ts";
import { mirrorFirst } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Names of accounts, which nothing shows that embeds an account, and of whose changes no event tells.

let world: TestWorld;
let repository: Repository;
let query: string;

const MINUTE = 60_000;

beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 20, pulls: 4 });
    },
  });
  repository = await mirrorFirst(world);
  const [owner, name] = world.first.split("/");
  query = `{ repository(owner: "${owner}", name: "${name}") { owner { login ... on User { name } ... on Organization { name } }
    issues(first: 50) { nodes { number author { login ... on User { name company } } assignees(first: 5) { nodes { name } } } } } }`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const ask = (token: string, base = world.url): Promise<Answered> =>
  askAt(base, "POST", "/graphql", { token, body: JSON.stringify({ query }) });
const isForwarded = ({ headers }: Answered) => headers.get("x-tain-passed-through") !== null;

/** Reads the names that are due after this time, and answers the points that it cost. */
async function readAfter(ms: number): Promise<number> {
  world.advance(ms);
  world.simulator.meter.reset();
  await fetchAndStoreNames(world.ctx);
  return world.simulator.meter.read().points;
}

/** Expects that the mirror itself answers what upstream answers. */
async function expectHeld(): Promise<void> {
  const [ours, theirs] = [await ask(UPSTREAM_TOKEN), await ask(UPSTREAM_TOKEN, world.simulator.url)];
  expect(isForwarded(ours)).toBe(false);
  expect(ours.body).toEqual(theirs.body);
  expect((await ask(world.token)).body).toEqual(theirs.body);
}

function author(): User {
  const found = [...repository.rows.issuesByCreated.ascending()]
    .map(({ authorId }) => world.simulator.world.users.get(authorId ?? 0))
    .find((user) => user?.type === "User" && user.name !== null && user.id !== repository.ownerId);
  if (!found) throw new Error("Nobody with a name has written here");
  return found;
}

test("a name that is not known yet is never null: upstream answers, or the field has an error", async () => {
  const theirs = await ask(UPSTREAM_TOKEN);
  expect(isForwarded(theirs)).toBe(true);
  expect(theirs.body.errors).toBeUndefined();
  world.simulator.setFaults({ http: [{ kind: "status", status: 403, match: "POST /graphql" }] });
  const { errors } = (await ask(world.token)).body;
  world.simulator.setFaults({});
  expect(errors.map(({ message }: { message: string }) => message)).toContainEqual(
    expect.stringMatching(/^`name` of this User is not mirrored/),
  );
});

test("the names of all accounts cost a point, also those of who has none", async () => {
  expect(await readAfter(0)).toBe(1);
  await expectHeld();
  const shown = JSON.stringify((await ask(world.token)).body);
  expect(shown).toContain('"name":null');
  expect(shown).toContain(JSON.stringify(author().name));
  // Nobody is to be asked for again before a day is over.
  expect(await readAfter(MINUTE)).toBe(0);
});

test("an answer with names says when upstream confirmed it, and that this is not of accounts", async () => {
  const { headers } = await ask(world.token);
  expect(headers.get("x-tain-confirmed-at")).not.toBeNull();
  expect(headers.get("x-tain-not-confirmed")).toContain("accounts");
});

test("another name is here after a day, for a point", async () => {
  editUser(world.simulator.world, author(), { name: "Somebody Else" });
  expect(await readAfter(NAME_AGE_MS)).toBe(1);
  await expectHeld();
  editUser(world.simulator.world, author(), { name: null, company: "@others" });
  expect(await readAfter(NAME_AGE_MS)).toBe(1);
  await expectHeld();
});

test("an account that a webhook shows first is asked for at once, and that query asks for others that are due soon", async () => {
  const { world: upstream } = world.simulator;
  const newcomer = upstream.addUser({ login: "newcomer", name: "New Comer" });
  createIssue(upstream, newcomer.id, { repository, title: "Hello" });
  await world.settle();
  expect(isForwarded(await ask(UPSTREAM_TOKEN))).toBe(true);
  expect(await readAfter(NAME_AGE_MS / 2)).toBe(1);
  await expectHeld();
  // All are due at the same time again.
  expect(await readAfter(NAME_AGE_MS / 2)).toBe(0);
  expect(await readAfter(NAME_AGE_MS / 2)).toBe(1);
});

test("a name that is not known yet is asked for once a caller wants it who cannot be handed to upstream", async () => {
  const { world: upstream, meter } = world.simulator;
  const two = ["second", "third"].map((login) => upstream.addUser({ login, name: `The ${login}` }));
  for (const { id } of two) createIssue(upstream, id, { repository, title: "Hello" });
  await world.settle();
  meter.reset();
  const theirs = await ask(UPSTREAM_TOKEN, world.simulator.url);
  const before = meter.read().points;
  expect((await ask(world.token)).body).toEqual(theirs.body);
  expect(meter.read().points - before).toBe(1);
  await expectHeld();
  // Upstream was asked for no name again.
  expect(await readAfter(MINUTE)).toBe(0);
});

test("while upstream cannot be asked for a name, the field has an error, and the next document asks again", async () => {
  const { world: upstream } = world.simulator;
  const { id } = upstream.addUser({ login: "later", name: "Known Later" });
  createIssue(upstream, id, { repository, title: "Hello" });
  await world.settle();
  world.simulator.setFaults({ http: [{ kind: "status", status: 403, match: "POST /graphql" }] });
  const { data, errors } = (await ask(world.token)).body;
  world.simulator.setFaults({});
  expect(errors.map(({ path }: { path: unknown[] }) => path.at(-1))).toEqual(["name", "company"]);
  expect(JSON.stringify(data)).toContain('"login":"later"');
  expect((await ask(world.token)).body.errors).toBeUndefined();
  await expectHeld();
});

const emailsOf = (one: TestWorld) => {
  const [owner, name] = one.first.split("/");
  return JSON.stringify({
    query: `{ repository(owner: "${owner}", name: "${name}") { issues(first: 50) { nodes { author { login ... on User { email } } } } } }`,
  });
};

test("a public email is shown to a token of Tain's own as upstream shows it, and the caller's own token asks upstream", async () => {
  editUser(world.simulator.world, author(), { email: "public@example.com" });
  expect(await readAfter(NAME_AGE_MS)).toBe(1);
  const body = emailsOf(world);
  const theirs = await askAt(world.simulator.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body });
  expect(JSON.stringify(theirs.body)).toContain('"email":"public@example.com"');
  expect(JSON.stringify(theirs.body)).toContain('"email":""');
  expect((await askAt(world.url, "POST", "/graphql", { token: world.token, body })).body).toEqual(theirs.body);
  expect(isForwarded(await askAt(world.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body }))).toBe(true);
});

test("without the scope for emails names are read alone, and that is learnt for a day", async () => {
  await using other = await openWorld({
    fill: ({ world: filled, tokens }) => {
      tokens.create({ token: UPSTREAM_TOKEN, login: OWNER, repositories: "all", write: true, scopes: ["repo"] });
      generateWorld(filled, { seed: 7, repositories: 1, issues: 20, pulls: 4 });
    },
  });
  await mirrorFirst(other);
  const asked = async () => {
    other.simulator.meter.reset();
    await fetchAndStoreNames(other.ctx);
    return other.simulator.meter.read().routes["POST /graphql"]?.requests ?? 0;
  };
  expect(await asked()).toBe(2);
  const body = emailsOf(other);
  const { errors } = (await askAt(other.url, "POST", "/graphql", { token: other.token, body })).body;
  expect(errors[0].message).toMatch(/^`email` of this User is not mirrored/);
  expect(await other.ctx.db.count(sql`select from users where name is not null`)).toBeGreaterThan(0);
  other.advance(NAME_AGE_MS - MINUTE);
  await other.ctx.db.query(sql`update account_names set due_at = ${other.ctx.clock.now()}`);
  expect(await asked()).toBe(1);
  other.advance(NAME_AGE_MS);
  expect(await asked()).toBe(2);
});

test("an account that upstream does not show any more keeps its name, and has none if it had none", async () => {
  const { db, clock } = world.ctx;
  const [first, second] = await db.query<{ id: number }>(sql`
    insert into users (id, node_id, login, type, document, seen_at, seen_by_read) values
        (987654321, 'MDQ6VXNlcjk4NzY1NDMyMQ==', 'gone', 'User', '{"login":"gone","id":987654321,"type":"User","name":"Gone"}', now(), true),
        (987654322, 'MDQ6VXNlcjk4NzY1NDMyMg==', 'away', 'User', '{"login":"away","id":987654322,"type":"User"}', now(), true)
      returning id`);
  const ids = sql.array([first?.id ?? 0, second?.id ?? 0], "bigint");
  await db.query(
    sql`insert into account_names (user_id, due_at) select id, ${clock.now()} from unnest(${ids}) as x(id)`,
  );
  expect(await readAfter(MINUTE)).toBe(1);
  expect(
    await db.query(sql`
    select document ->> 'name' as name, document::text like '%"name":%' as "isKnown" from users
      where id = any(${ids}::bigint[]) order by id`),
  ).toEqual([
    { name: "Gone", isKnown: true },
    { name: null, isKnown: true },
  ]);
  expect(await readAfter(MINUTE)).toBe(0);
});

test("an id that belongs to another account brings no name", async () => {
  const { db } = world.ctx;
  const other = author();
  const [made] = await db.query<{ id: number }>(sql`
    insert into users (id, node_id, login, type, document, seen_at, seen_by_read)
      select 987654323, node_id, 'made-up', 'User', '{"login":"made-up","id":987654323,"type":"User"}', now(), false
        from users where id = ${other.id} returning id`);
  await db.query(sql`insert into account_names (user_id, due_at) values (${made?.id ?? 0}, ${world.ctx.clock.now()})`);
  expect(await readAfter(MINUTE)).toBe(1);
  expect(await db.query(sql`select name, document -> 'name' as shown from users where id = ${made?.id ?? 0}`)).toEqual([
    { name: null, shown: null },
  ]);
  expect(await readAfter(MINUTE)).toBe(0);
});

test("accounts that come singly wait for each other: a query in three minutes", async () => {
  const { db, clock } = world.ctx;
  const one = author().id;
  let points = 0;
  for (let minute = 0; minute < 60; minute++) {
    await db.query(sql`update account_names set due_at = ${clock.now()} where user_id = ${one}`);
    points += await readAfter(MINUTE);
  }
  // Eight may follow each other closely.
  expect(points).toBeLessThanOrEqual(60 / 3 + 8);
});

test("while upstream refuses, its reason is told, and all is asked for again later", async () => {
  const { db } = world.ctx;
  world.simulator.setFaults({ http: [{ kind: "status", status: 403, match: "POST /graphql" }] });
  await readAfter(NAME_AGE_MS);
  const [problem] = await db.query<{ task: string }>(sql`select task from problems where task = 'names'`);
  expect(problem).toBeDefined();
  world.simulator.setFaults({});
  expect(await readAfter(60 * MINUTE)).toBe(1);
  expect(await db.query(sql`select task from problems where task = 'names'`)).toEqual([]);
});

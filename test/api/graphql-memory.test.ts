/** What a process remembers for GraphQL is never shown after a change, in any process. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { Fields } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { store } from "../support/mirrored.ts";
import { countStatements } from "../support/statements.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
/** Two processes over the same stores. */
let processes: string[];
let fullName: string;
let at: { id: number; fullName: string; htmlUrl: string | null };
beforeAll(async () => {
  world = await openApiWorld({ issues: 40 });
  const open = world.repositories.find((one) => !one.private);
  if (!open) throw new Error("There is no public repository");
  fullName = open.fullName;
  at = { id: open.id, fullName, htmlUrl: (await upstream("")).html_url };
  processes = [world.url, await world.openSibling()];
});
afterAll(() => world?.[Symbol.asyncDispose]());

const ISSUES = `query($owner: String!, $name: String!, $first: Int = 100) { repository(owner: $owner, name: $name) { nameWithOwner description owner { login }
  issues(first: $first, orderBy: {field: CREATED_AT, direction: DESC}) { totalCount
    nodes { number title body state url author { login ... on User { name } } labels(first: 10) { totalCount nodes { name color } } assignees(first: 10) { nodes { login } } milestone { title creator { login } } } } } }`;

function ask(
  url: string,
  { name = fullName, query = ISSUES, token = world.token, first = 100 } = {},
): Promise<Answered> {
  const [owner, repo] = name.split("/");
  const body = JSON.stringify({ query, variables: { owner, name: repo, first } });
  return askAt(url, "POST", "/graphql", { token, body });
}

/** Asks often enough that each process keeps all that it can: answers, and the parts that they are made of. */
async function warm(name = fullName): Promise<Answered> {
  for (const url of processes) {
    for (let time = 0; time < 4; time++) await ask(url, { name });
    for (const first of [98, 97, 96]) await ask(url, { name, first });
  }
  return ask(processes[0] as string, { name });
}

let asked = 0;

/**
 * What both processes show now. Each is asked for an answer that may be kept, and for one that was never asked for
 * before.
 */
async function shown(name = fullName): Promise<Answered["body"]> {
  asked += 1;
  const answers = await Promise.all(
    processes.flatMap((url) => [ask(url, { name }), ask(url, { name, first: 95 - asked })]),
  );
  for (const answer of answers) expect(answer.body).toEqual(answers[0]?.body);
  return answers[0]?.body;
}

// biome-ignore lint/suspicious/noExplicitAny: what upstream shows is changed and stored again
async function upstream(path: string): Promise<any> {
  return (await askAt(world.upstream.url, "GET", `/repos/${fullName}${path}`, { token: UPSTREAM_TOKEN })).body;
}

let moves = 0;
/** As if upstream had shown the resource anew, changed. */
async function change(
  kind: Kind,
  resource: Fields,
  changes: Fields,
  options: { deleted?: boolean } = {},
): Promise<void> {
  moves += 1;
  const updated_at = new Date(Date.now() + moves * 1_000).toISOString().replace(/\.\d+/, "");
  const stamped = "updated_at" in resource ? { updated_at } : {};
  await store(world.ctx, world.upstream, kind, { ...resource, ...changes, ...stamped }, at, options);
}

/** The question whether all that an answer shows is unchanged. */
const STANDS = expect.stringContaining("left join repository_syncs s on s.repository_id = x.id");

test("an answer is remembered", async () => {
  const first = await warm();
  expect(first.body.errors).toBeUndefined();
  expect(first.body.data.repository.issues.nodes.length).toBeGreaterThan(5);
  using statements = countStatements();
  expect((await ask(processes[0] as string)).text).toBe(first.text);
  expect(statements.texts()).toEqual([STANDS]);
});

test("what issues are written as is remembered for other pages of the same query", async () => {
  const { nodes, totalCount } = (await warm()).body.data.repository.issues;
  using statements = countStatements();
  const { body } = await ask(processes[0] as string, { first: 7 });
  expect(body.data.repository.issues.nodes).toEqual(nodes.slice(0, 7));
  expect(body.data.repository.issues.totalCount).toBe(totalCount);
  // The second statement asks which issues are on the page, and leaves out their documents.
  expect(statements.texts()).toEqual([STANDS, expect.stringContaining("'' as document")]);
});

test("nodes and edges of one connection show what each selects, again and again", async () => {
  const query = `query($owner: String!, $name: String!, $first: Int) { repository(owner: $owner, name: $name) {
    issues(first: $first) { pageInfo { endCursor } edges { cursor node { number title } } nodes { number } more: nodes { number url author { login } } } } }`;
  const answers: Answered[] = [];
  for (let time = 0; time < 3; time++)
    for (const first of [5, 6, 7]) answers.push(await ask(processes[0] as string, { query, first }));
  for (const { body } of answers) {
    const { edges, nodes, more } = body.data.repository.issues;
    expect(nodes).toEqual(edges.map(({ node }: { node: Fields }) => ({ number: node.number })));
    expect(edges.every(({ node }: { node: Fields }) => Object.keys(node).join() === "number,title")).toBe(true);
    expect(
      more.map(({ number, url }: Fields) => url === `https://github.com/${fullName}/issues/${number}`),
    ).not.toContain(false);
    expect(edges).toEqual(answers.at(-1)?.body.data.repository.issues.edges.slice(0, edges.length));
  }
});

test("a changed issue is shown at once, and so is a new count", async () => {
  await warm();
  const [issue] = (await upstream("/issues?state=all&per_page=100")).filter((one: Fields) => !one.pull_request);
  await change("issue", issue, { title: "Renamed meanwhile", body: "And rewritten" });
  const { nodes, totalCount } = (await shown()).data.repository.issues;
  expect(nodes.find((one: Fields) => one.number === issue.number)).toMatchObject({
    title: "Renamed meanwhile",
    body: "And rewritten",
  });
  await warm();
  await change("issue", issue, {}, { deleted: true });
  expect((await shown()).data.repository.issues.totalCount).toBe(totalCount - 1);
});

test("a renamed label, milestone and person show everywhere at once", async () => {
  const all = (await warm()).body.data.repository.issues.nodes;
  const label = all.find((one: Fields) => (one.labels as { totalCount: number }).totalCount > 0).labels.nodes[0].name;
  const [found] = (await upstream("/labels?per_page=100")).filter((one: Fields) => one.name === label);
  await change("label", found, { name: "another name", color: "123456" });
  let text = JSON.stringify(await shown());
  expect(text).toContain("another name");
  expect(text).not.toContain(`{"name":"${label}",`);

  await warm();
  const [milestone] = await upstream("/milestones?state=all");
  await change("milestone", milestone, { title: "another title" });
  text = JSON.stringify(await shown());
  if (all.some((one: Fields) => (one.milestone as Fields | null)?.title === milestone.title))
    expect(text).toContain("another title");
  expect(text).not.toContain(`"title":${JSON.stringify(milestone.title)}`);

  await warm();
  const login = all[0].author.login;
  const user = (await askAt(world.upstream.url, "GET", `/users/${login}`, { token: UPSTREAM_TOKEN })).body;
  await change("user", user, { name: "Somebody Else" });
  const [first] = (await shown()).data.repository.issues.nodes;
  expect(first.author).toEqual({ login, name: "Somebody Else" });
});

test("a deleted label is on no issue any more", async () => {
  const nodes = (await warm()).body.data.repository.issues.nodes;
  const label = nodes.flatMap((one: { labels: { nodes: Fields[] } }) => one.labels.nodes)[0].name;
  const rows = await world.ctx.db.query<{ document: string }>(sql`
    select document::text from labels where repository_id = ${at.id} and name = ${label}`);
  const { id } = JSON.parse(rows[0]?.document ?? "{}");
  const found = (await upstream("/labels?per_page=100")).find((one: Fields) => one.id === id);
  await change("label", found, { name: label }, { deleted: true });
  const after = (await shown()).data.repository.issues.nodes;
  expect(
    after.flatMap((one: { labels: { nodes: Fields[] } }) => one.labels.nodes.map((node) => node.name)),
  ).not.toContain(label);
});

test("what is not followed any more is not found, and a repository that turns private only by those who may", async () => {
  const stranger = await createApiToken(world.ctx, {
    userId: 1,
    canWrite: false,
    scope: { repositoryIds: [], ownerIds: [] },
  });
  const whole = await upstream("");
  for (let time = 0; time < 4; time++) {
    for (const url of processes) expect((await ask(url, { token: stranger })).body.errors).toBeUndefined();
    await warm();
  }
  await change("repository", whole, { private: true, visibility: "private" });
  for (const url of processes) {
    expect((await ask(url, { token: stranger })).body.errors).toMatchObject([{ type: "NOT_FOUND" }]);
    expect((await ask(url)).body.errors).toBeUndefined();
  }
  await change("repository", whole, { private: false, visibility: "public" });
  for (const url of processes) expect((await ask(url, { token: stranger })).body.errors).toBeUndefined();

  await warm();
  await world.ctx.db.query(sql`update repository_syncs set state = 'gone' where repository_id = ${at.id}`);
  for (const url of processes) expect((await ask(url)).body.errors).toMatchObject([{ type: "NOT_FOUND" }]);
  await world.ctx.db.query(sql`
    update repository_syncs set state = 'backfilling', added_at = now() where repository_id = ${at.id}`);
  expect((await shown()).errors).toBeUndefined();
});

test("a former name leads to the repository that has it now", async () => {
  const whole = await upstream("");
  const other = world.repositories.find(({ id }) => id !== at.id);
  if (!other) throw new Error("There is no second repository");
  const old = fullName;
  const moved = `${old}-moved`;
  await change("repository", whole, { name: moved.split("/")[1] as string, full_name: moved });
  expect((await warm(old)).body.data.repository.nameWithOwner).toBe(moved);
  const second = (await askAt(world.upstream.url, "GET", `/repositories/${other.id}`, { token: UPSTREAM_TOKEN })).body;
  await change("repository", second, { name: old.split("/")[1] as string, full_name: old, owner: whole.owner });
  expect((await shown(old)).data.repository.nameWithOwner).toBe(old);
  expect((await shown(moved)).data.repository.nameWithOwner).toBe(moved);
});

test("an answer that is given again costs as much, says how fresh it is, and is compressed for those who take it so", async () => {
  const name = `${fullName}-moved`;
  await warm(name);
  const [url] = processes as [string];
  const [first, second] = [await ask(url, { name }), await ask(url, { name })];
  const left = ({ headers }: Answered) => Number(headers.get("x-ratelimit-remaining"));
  // A request for the page, and two for each of its hundred issues: 201, by the hundred.
  expect(left(second)).toBe(left(first) - 2);
  await world.ctx.db.query(sql`
    update repository_syncs set confirmed_at = '2026-01-02T03:04:05Z' where repository_id = ${at.id}`);
  expect((await ask(url, { name })).headers.get("x-tain-confirmed-at")).toBe("2026-01-02T03:04:05.000Z");
  const [owner, repo] = name.split("/");
  const body = JSON.stringify({ query: ISSUES, variables: { owner, name: repo, first: 100 } });
  const zipped = await askAt(url, "POST", "/graphql", {
    token: world.token,
    body,
    headers: { "accept-encoding": "gzip" },
  });
  expect(zipped.headers.get("content-encoding")).toBe("gzip");
  expect(zipped.text).toBe(second.text);
});

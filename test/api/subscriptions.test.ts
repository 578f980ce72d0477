import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { storeAndTell } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { type Event, openStream } from "./event-stream.ts";

let world: ApiWorld;
let repository: { id: number; fullName: string; private: boolean };
let repositoryId: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 40 });
  repository = world.repositories[0] as ApiWorld["repositories"][number];
  repositoryId = (await world.get(`/repos/${repository.fullName}`)).body.node_id;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const ISSUES =
  "subscription($id: ID!) { issueChanged(repositoryId: $id) { number issue { title labels(first: 5) { nodes { name } } } } }";
const PULLS = "subscription($id: ID!) { pullRequestChanged(repositoryId: $id) { number pullRequest { title } } }";

const subscribe = (query: string, options: { url?: string; id?: string; accept?: string } = {}) =>
  openStream({ url: world.url, token: world.token, query, variables: { id: options.id ?? repositoryId }, ...options });

/** As if upstream had shown it. */
async function show(kind: "issue" | "pull_request", number: number, changed: object, deleted = false): Promise<void> {
  const path = kind === "issue" ? "issues" : "pulls";
  const { body } = await world.getUpstream(`/repos/${repository.fullName}/${path}/${number}`);
  clock += 60_000;
  const updated = new Date(Date.parse(body.updated_at) + clock).toISOString().replace(/\.\d+Z$/, "Z");
  const at = { ...repository, htmlUrl: `https://github.com/${repository.fullName}` };
  await storeAndTell(world.ctx, world.upstream, kind, { ...body, updated_at: updated, ...changed }, at, { deleted });
}
let clock = 0;

async function numbers(): Promise<{ issues: number[]; pulls: number[] }> {
  const rows = (await world.get(`/repos/${repository.fullName}/issues?state=all&per_page=100`)).body as Event[];
  const of = (isPull: boolean) => rows.filter((row) => !!row.pull_request === isPull).map((row) => row.number);
  return { issues: of(false), pulls: of(true) };
}

test("a change is told to every process that has subscribers, and is there to read", async () => {
  const [number = 0, other = 0] = (await numbers()).issues;
  await using here = await subscribe(ISSUES);
  await using there = await subscribe(ISSUES, { url: await world.openSibling() });
  expect(here.answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  await show("issue", number, { title: "Told" });
  for (const stream of [here, there])
    expect(await stream.next()).toMatchObject({ data: { issueChanged: { number, issue: { title: "Told" } } } });
  // The same again changes nothing and is not told: the next event is about another issue.
  clock -= 60_000;
  await show("issue", number, { title: "Told" });
  await show("issue", other, { title: "Another", labels: [] });
  expect((await here.next()).data.issueChanged).toMatchObject({ number: other, issue: { labels: { nodes: [] } } });
});

test("a pull request changes as one, when either of its sides was seen", async () => {
  const { issues, pulls } = await numbers();
  const [number = 0] = pulls;
  await using ofPulls = await subscribe(PULLS);
  await using ofIssues = await subscribe(ISSUES);
  await show("pull_request", number, { title: "By its own side" });
  const told = (title: string) => ({ data: { pullRequestChanged: { number, pullRequest: { title } } } });
  expect(await ofPulls.next()).toEqual(told("By its own side"));
  await show("issue", number, { title: "By its issue side" });
  expect(await ofPulls.next()).toMatchObject({ data: { pullRequestChanged: { number } } });
  await show("issue", issues[2] ?? 0, { title: "An issue" });
  expect((await ofIssues.next()).data.issueChanged.number).toBe(issues[2]);
});

test("a deletion is told with nothing to show", async () => {
  const number = (await numbers()).issues.at(-1) ?? 0;
  await using stream = await subscribe(ISSUES);
  await show("issue", number, {}, true);
  expect(await stream.next()).toEqual({ data: { issueChanged: { number, issue: null } } });
});

test("when the connection that tells is lost the stream ends, and the next one works", async () => {
  const [number = 0] = (await numbers()).issues;
  await using stream = await subscribe(ISSUES);
  await world.ctx.db.query(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'tain subscriptions' and datname = current_database()`);
  expect(await stream.next()).toBeNull();
  await using again = await subscribe(ISSUES);
  await show("issue", number, { title: "After the loss" });
  expect((await again.next()).data.issueChanged.issue.title).toBe("After the loss");
});

test("with no subscriber left Postgres is told nothing", async () => {
  const [number = 0] = (await numbers()).issues;
  const client = new pg.Client({ connectionString: world.ctx.config.databaseUrl });
  await client.connect();
  try {
    const heard: string[] = [];
    client.on("notification", ({ channel }) => heard.push(channel));
    await client.query("listen tain_changes");
    const alone = async () =>
      (
        await client.query(
          "select from pg_stat_activity where application_name = 'tain subscriptions' and datname = current_database()",
        )
      ).rows.length === 0;
    await expect.poll(alone).toBe(true);
    await show("issue", number, { title: "Heard by nobody" });
    await client.query("notify tain_changes");
    await expect.poll(() => heard.length).toBe(1);
  } finally {
    await client.end();
  }
});

test.each([
  ["without the header that asks for a stream", { accept: "application/json" }, /send `Accept: text\/event-stream`/],
  ["of what is no repository", { id: "I_kwDOHrjtpM5OBUf6" }, /Could not resolve to a node/],
])("%s it is refused in GraphQL's shape", async (_what, options, message) => {
  const { answer } = await subscribe(ISSUES, options);
  expect(answer.headers.get("content-type")).toMatch(/json/);
  expect((await answer.json()) as Event).toMatchObject({ errors: [{ message: expect.stringMatching(message) }] });
});

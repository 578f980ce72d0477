/**
 * Tain refuses an identity that it could not recognise again, and says why. A row that is broken nevertheless does no
 * harm beyond itself.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { askAt } from "../support/asking.ts";
import { forge } from "../support/forging.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

type Fields = Record<string, unknown>;

let world: TestWorld;
let repository: Fields;
let issue: Fields;
let label: Fields;
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 12, pulls: 4 }),
  });
  await world.mirror(world.first);
  const bodyOf = async (path: string) => (await world.get(`/repos/${world.first}${path}`)).body as Fields & Fields[];
  repository = await bodyOf("");
  const labelled = (await bodyOf("/issues?state=all")).find(({ labels }) => (labels as Fields[]).length > 0);
  if (!labelled) throw new Error("No issue has a label");
  issue = labelled;
  label = (issue.labels as Fields[])[0] as Fields;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const without = (fields: Fields, ...keys: string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)));
const sender = { id: 1, login: "mallory" };

test.each<[string, string, () => Fields, RegExp]>([
  [
    "an issue without its id",
    "issues",
    () => ({ action: "edited", issue: without(issue, "id") }),
    /issue .*without id/,
  ],
  [
    "an issue without its number",
    "issues",
    () => ({ action: "edited", issue: without(issue, "number") }),
    /issue .*without number/,
  ],
  ["no issue", "issues", () => ({ action: "edited" }), /issue is not an object/],
  [
    "a comment on an issue without its id",
    "issue_comment",
    () => ({ action: "created", issue: without(issue, "id"), comment: { id: 1 } }),
    /issue .*without id/,
  ],
  [
    "a label without its node id",
    "label",
    () => ({ action: "edited", label: without(label, "node_id") }),
    /label .*without node_id/,
  ],
  [
    "an issue that was given such a label",
    "issues",
    () => ({ action: "labeled", issue, label: without(label, "node_id") }),
    /label .*without node_id/,
  ],
  [
    "a repository without its id",
    "repository",
    () => ({ action: "edited", repository: without(repository, "id") }),
    /repository came without a whole id/,
  ],
])("%s fails in words, and every page is as before", async (_, event, payload, reason) => {
  const pages = async () =>
    await Promise.all(["/issues?state=all", "/labels", ""].map((path) => world.get(`/repos/${world.first}${path}`)));
  const before = await pages();
  const outcome = await forge(world, event, { repository, sender, ...payload() });
  expect(outcome).toEqual({ status: "failed", reason: expect.stringMatching(reason) });
  expect((await pages()).map(({ status, body }) => ({ status, body }))).toEqual(
    before.map(({ status, body }) => ({ status, body })),
  );
});

test("a stored label without a node id is null where GraphQL shows it, and all else is shown", async () => {
  await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`update labels set node_id = null, document = (document::jsonb - 'node_id')::json, revision = nextval('revision')
      where repository_id = ${Number(repository.id)} and id = ${Number(label.id)}`);
    tx.touch([Number(repository.id)]);
  });
  const [owner, name] = world.first.split("/");
  const query = `{ repository(owner: "${owner}", name: "${name}") { issue(number: ${issue.number}) { title labels(first: 50) { nodes { id name } } }
    labels(first: 100) { totalCount nodes { id name } } } }`;
  const { status, body } = await askAt(world.url, "POST", "/graphql", {
    token: world.token,
    body: JSON.stringify({ query }),
  });
  expect({ status, body }).toMatchObject({ status: 200 });
  const { issue: shown, labels } = body.data.repository;
  expect(shown.title).toBe(issue.title);
  expect(shown.labels.nodes).toContain(null);
  expect(labels.nodes.filter((one: unknown) => one === null)).toHaveLength(1);
  expect(labels.nodes).toHaveLength(labels.totalCount);
  const rest = await world.get(`/repos/${world.first}/issues/${issue.number}`);
  expect(rest.status).toBe(200);
  const named = (rest.body as Fields).labels as Fields[];
  expect(named.map((one) => one.name)).toContain(label.name);
});

/** What a document gets whose fields the mirror holds only in part, from callers for whom nothing is forwarded. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const PERSON = "ghp_of-a-person";
const HELP = "Show a token of the service's own, and this mirror has the service answer the whole document.";
let world: ApiWorld;
/** `repository(owner: …, name: …)` of the mirrored one. */
let at: string;
let repositoryId: string;
let title: string;
let number: number;

beforeAll(async () => {
  world = await openApiWorld({ issues: 60, repositories: 3, mergeableDelayMs: 0 });
  const repo = world.repositories.find((one) => !one.private)?.fullName ?? "";
  const [owner = "", name = ""] = repo.split("/");
  at = `repository(owner: "${owner}", name: "${name}")`;
  world.upstream.tokens.create({ token: PERSON, login: "person", repositories: "all" });
  const { body } = await world.query(`{ ${at} { id issues(first: 1) { nodes { number title } } } }`);
  repositoryId = body.data.repository.id;
  ({ number, title } = body.data.repository.issues.nodes[0]);
  // Upstream says whose token this is while it can be asked.
  await askAt(world.url, "GET", "/user", { token: PERSON });
  world.upstream.setFaults({ http: [{ kind: "reset" }] });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const ask = async (query: string, variables: object = {}) => (await world.query(query, variables)).body;
const unheld = (field: string, type: string) => `\`${field}\` of ${type} is not mirrored. ${HELP}`;

test("a field that is not held is null, and an error names its place and what to do; the rest is shown", async () => {
  const body = await ask(`{ ${at} { issue(number: ${number}) { title edited: lastEditedAt } } }`);
  expect(body.data.repository.issue).toEqual({ title, edited: null });
  expect(body.errors).toEqual([
    {
      type: "FORBIDDEN",
      path: ["repository", "issue", "edited"],
      locations: [{ line: 1, column: expect.any(Number) }],
      message: unheld("lastEditedAt", "Issue"),
    },
  ]);
});

test("where the service never shows null, the parent is null, and what stands beside it is shown", async () => {
  const body = await ask(`{ ${at} { name issue(number: ${number}) { title titleHTML } } }`);
  expect(body.data.repository).toEqual({ name: expect.any(String), issue: null });
  expect(body.errors).toMatchObject([{ path: ["repository", "issue", "titleHTML"] }]);
});

test("each place of a list has its own error", async () => {
  const body = await ask(`{ ${at} { issues(first: 3) { nodes { number editor { login } } } } }`);
  expect(body.data.repository.issues.nodes).toEqual(
    [0, 1, 2].map(() => ({ number: expect.any(Number), editor: null })),
  );
  expect(body.errors.map((one: { path: unknown[] }) => one.path.slice(2))).toEqual(
    [0, 1, 2].map((index) => ["nodes", index, "editor"]),
  );
});

test("a list is not shown by a filter that the mirror does not know", async () => {
  for (const value of ["true", "$on"]) {
    const declared = value === "$on" ? "query($on: Boolean) " : "";
    const list = `issues(first: 1, filterBy: {viewerSubscribed: ${value}}) { totalCount }`;
    const body = await ask(`${declared}{ ${at} { name ${list} } }`, { on: true });
    expect(body.errors).toMatchObject([
      { message: `The mirror cannot answer \`issues\` of Repository by \`viewerSubscribed\`. ${HELP}` },
    ]);
    expect(body.data).toEqual({ repository: null });
  }
});

test("variables and fragments that only the rest used are no fault of the caller's", async () => {
  const query = `query($since: GitTimestamp, $number: Int!) {
      ${at} { name issue(number: $number) { ...a lastEditedAt } defaultBranchRef { compare(headRef: "x") { ...b } name } }
    }
    fragment a on Issue { title }
    fragment b on Comparison { commits(first: 1) { nodes { ...c } } }
    fragment c on Commit { history(first: 1, since: $since) { totalCount } }`;
  const body = await ask(query, { number, since: "2020-01-01T00:00:00Z" });
  expect(body.data.repository.issue).toEqual({ title, lastEditedAt: null });
  expect(body.data.repository.defaultBranchRef).toEqual({ compare: null, name: expect.any(String) });
  expect(body.errors).toHaveLength(2);
});

test("an interface that only the service has stands for those of its types that are here", async () => {
  const query = `query($id: ID!) {
    node(id: $id) { ... on Starrable { stargazerCount ...s } ... on Discussion { title } ...d }
    ${at} { issue(number: ${number}) { ... on Reactable { reactions(first: 1) { totalCount } databaseId } } }
  }
  fragment s on Starrable { viewerHasStarred }
  fragment d on Discussion { body }`;
  const body = await ask(query.replace("...s", ""), { id: repositoryId });
  // A fragment that nobody spreads is the caller's fault.
  expect(body.data).toBeUndefined();
  const { data, errors } = await ask(query.replace("...s", "").replace(/fragment s.*/, ""), { id: repositoryId });
  expect(errors).toBeUndefined();
  expect(data.node).toEqual({ stargazerCount: expect.any(Number) });
  expect(data.repository.issue).toEqual({
    reactions: { totalCount: expect.any(Number) },
    databaseId: expect.any(Number),
  });
  const whole = await ask(query, { id: repositoryId });
  expect(whole.data.node).toBeNull();
  expect(whole.errors).toMatchObject([{ path: ["node", "viewerHasStarred"] }]);
});

test("a part costs what it costs by itself, and a point where nothing of the document is held", async () => {
  const remaining = async (query: string) => Number((await world.query(query)).headers.get("x-ratelimit-remaining"));
  const before = await remaining("{ viewer { login } }");
  const many = "issues(first: 100) { nodes { editor { login } comments(first: 30) { nodes { id } } } }";
  expect(await remaining(`{ ${at} { name lockReason } }`)).toBe(before - 1);
  expect(await remaining("{ viewer { login noSuchField } }")).toBe(before - 2);
  expect(
    await remaining(`{ ${at} { ${many} many: issues(first: 100) { nodes { labels(first: 5) { nodes { name } } } } } }`),
  ).toBe(before - 4);
});

test("what is skipped is not missed", async () => {
  const query = `query($no: Boolean!) { ${at} { name lockReason @include(if: $no) } }`;
  expect(await ask(query, { no: false })).toEqual({ data: { repository: { name: expect.any(String) } } });
  expect((await ask(query, { no: true })).data.repository).toEqual({ name: expect.any(String), lockReason: null });
});

test("a name that the service does not have either is refused, and nothing is answered", async () => {
  for (const query of [
    `{ ${at} { name lockReason noSuchField } }`,
    `{ ${at} { name lockReason } noSuchRoot }`,
    `{ ${at} { lockReason ... on NoSuchType { id } } }`,
    `query($unused: Int) { ${at} { name lockReason } }`,
    `query($on: NoSuchInput) { ${at} { name lockReason issues(first: $on) { totalCount } } }`,
  ]) {
    const { data, errors } = await ask(query);
    expect(data, query).toBeUndefined();
    expect(errors.at(-1), query).toMatchObject({ type: "FORBIDDEN" });
  }
});

test("a mutation that asks to be shown what is not held is refused before anything is done", async () => {
  const body = await ask(
    `mutation { createIssue(input: {repositoryId: "${repositoryId}", title: "t"}) { issue { lastEditedAt } } }`,
  );
  expect(body.data).toBeUndefined();
  expect(world.upstream.world.issues.values().some((one) => one.title === "t")).toBe(false);
});

test("another mirror is told that the field does not exist, and so asks differently", async () => {
  const asking = { headers: { prefer: "settled" } };
  const { body } = await world.query(`{ ${at} { name lockReason } }`, {}, asking);
  expect(body.data).toBeUndefined();
  expect(body.errors[0].message).toBe("Field 'lockReason' doesn't exist on type 'Repository'");
});

test("a long document is answered in part, too", async () => {
  const many = Array.from({ length: 200 }, (_, n) => `a${n}: issue(number: ${number}) { title }`).join(" ");
  const body = await ask(`{ ${at} { ${many} lockReason } }`);
  expect(Object.keys(body.data.repository)).toHaveLength(201);
  expect(body.errors).toHaveLength(1);
});

test("an answer with too many errors is refused as too large", async () => {
  const many = Array.from({ length: 1_000 }, (_, n) => `a${n}: lastEditedAt`).join(" ");
  const body = await ask(`{ ${at} { issues(first: 100) { nodes { ${many} } } } }`);
  expect(body).toMatchObject({ data: null, errors: [{ type: "RESOURCE_LIMITS_EXCEEDED" }] });
});

test("a token of upstream's is still answered by upstream, or not at all", async () => {
  const query = JSON.stringify({ query: `{ ${at} { name lockReason } }` });
  const answer = await askAt(world.url, "POST", "/graphql", { token: PERSON, body: query });
  expect([answer.status, answer.body.data]).toEqual([502, undefined]);
});

test("where nothing is forwarded, a token of upstream's is answered in part", async () => {
  const off = await world.openSibling({ PASS_THROUGH: "off" });
  world.upstream.setFaults({});
  const query = JSON.stringify({ query: `{ ${at} { name lockReason } }` });
  const { body } = await askAt(off, "POST", "/graphql", { token: PERSON, body: query });
  world.upstream.setFaults({ http: [{ kind: "reset" }] });
  expect(body.data.repository).toEqual({ name: expect.any(String), lockReason: null });
  const help = "Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.";
  expect(body.errors).toMatchObject([{ message: `\`lockReason\` of Repository is not mirrored. ${help}` }]);
});

test("a token for issues alone is refused pull requests here, too", async () => {
  const hidden = world.repositories.find((one) => one.private)?.fullName ?? "";
  const [owner, name] = hidden.split("/");
  const token = await createApiToken(world.ctx, {
    userId: world.userId,
    canWrite: false,
    permissions: ["issues:read"],
  });
  const query = `{ repository(owner: "${owner}", name: "${name}") { lockReason pullRequest(number: 1) { id } } }`;
  const { body } = await world.query(query, {}, { token });
  expect(body.data.repository).toEqual({ lockReason: null, pullRequest: null });
  expect(body.errors.map((one: { type: string }) => one.type)).toEqual(["FORBIDDEN", "FORBIDDEN"]);
});

/** What one query may ask for. Each refusal comes before anything is read, and before points are taken. */
import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repository: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 40 });
  const [owner, name] = world.repositories[0]?.fullName.split("/") ?? [];
  repository = `repository(owner: "${owner}", name: "${name}")`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function ask(query: string, variables: object = {}) {
  const body = JSON.stringify({ query, variables });
  const { status, body: answer, headers } = await world.send("POST", "/graphql", { body });
  return { status, body: answer, used: Number(headers.get("x-ratelimit-used")) };
}

const REFUSED = { errors: [{ type: "RESOURCE_LIMITS_EXCEEDED" }] };

/** Each level asks for the next one under several names, so the fields multiply with the depth. */
function nested(levels: number, names: string[]): string {
  const fragments = Array.from({ length: levels }, (_, at) => {
    const inner = at === levels - 1 ? "name" : `...F${at + 1}`;
    return `fragment F${at} on Repository { ${names.map((name) => `${name}: owner { repository(name: "x") { ${inner} } }`).join(" ")} }`;
  });
  return `query { repository(owner: "no", name: "body") { ...F0 } } ${fragments.join(" ")}`;
}

const aliases = (count: number, field: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => `a${at}: ${field(at)}`).join(" ");

describe("refused at once, for a point", () => {
  test.each([
    ["fields that double with each level", () => nested(29, ["a", "b"])],
    ["fields that triple with each level", () => nested(29, ["a", "b", "c"])],
    [
      "a fragment of many fields at many places",
      () => `query { ${aliases(300, () => "viewer { ...F }")} } fragment F on User { ${aliases(100, () => "login")} }`,
    ],
    [
      "fields of one name, which would be compared in pairs",
      () => `query { ${repository} { ${aliases(480, (at) => (at % 2 ? "name" : "id")).replaceAll(/a\d+:/g, "a:")} } }`,
    ],
    [
      "eleven searches",
      () => `query { ${aliases(11, (at) => `search(type: ISSUE, query: "w${at}", first: 1) { issueCount }`)} }`,
    ],
    [
      "filters by what texts say",
      () =>
        `query { ${repository} { ${aliases(21, (at) => `issues(filterBy: {mentioned: "z${at}"}) { totalCount }`)} } }`,
    ],
    [
      "filters by a part of a name, of several kinds",
      () =>
        `query { ${repository} { ${aliases(21, (at) => `${["labels", "milestones", "assignableUsers"][at % 3]}(query: "z${at}") { totalCount }`)} } }`,
    ],
  ])("%s", async (_what, query) => {
    const { used } = await ask("query { viewer { login } }");
    const refused = await ask(query());
    expect(refused.body).toMatchObject(REFUSED);
    expect(refused.status).toBe(200);
    expect(refused.body.data).toBeUndefined();
    expect(refused.used).toBe(used + 1);
  });

  test("a filter whose text comes in a variable", async () => {
    const filters = aliases(21, (at) => `issues(filterBy: $f, first: ${at + 1}) { totalCount }`);
    const query = `query($f: IssueFilters) { ${repository} { ${filters} } }`;
    expect((await ask(query, { f: { mentioned: "z" } })).body).toMatchObject(REFUSED);
    expect((await ask(query, { f: { states: ["OPEN"] } })).body.errors).toBeUndefined();
  });
});

test("whatever is wrong with a document, it costs a point; with none left nothing of it is read", async () => {
  const token = await createApiToken(world.ctx, { userId: world.userId, canWrite: false, hourlyLimit: 6 });
  const send = (body: string) => world.send("POST", "/graphql", { body, token });
  for (const [at, body] of [
    "{",
    "[]",
    "{}",
    JSON.stringify({ query: "{" }),
    JSON.stringify({ query: "{ nothing }" }),
  ].entries())
    expect(Number((await send(body)).headers.get("x-ratelimit-used")), body).toBe(at + 1);
  await send(JSON.stringify({ query: "{ viewer { login } }" }));
  const spent = await send(JSON.stringify({ query: "{ nothing }" }));
  expect(spent.body).toMatchObject({ errors: [{ type: "RATE_LIMITED" }] });
  expect(Number(spent.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("a caller with many long documents is refused some, and another's long document is next", async () => {
  const other = await createApiToken(world.ctx, { userId: world.userId, canWrite: false, hourlyLimit: 1_000 });
  const long = (name: string) => `query { ${aliases(1_500, (at) => `viewer { ${name}${at}: login }`)} }`;
  const ended: string[] = [];
  const send = async (who: string, query: string, token: string) => {
    const answer = await world.send("POST", "/graphql", { body: JSON.stringify({ query }), token });
    ended.push(who);
    return answer;
  };
  const many = Array.from({ length: 30 }, (_, at) => send("many", long(`n${at}_`), world.token));
  const one = send("one", long("other"), other);
  expect((await one).status).toBe(200);
  const answers = await Promise.all(many);
  const refused = answers.filter(({ status }) => status === 403);
  expect(refused.length).toBeGreaterThan(0);
  for (const { headers } of refused) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  // Those that are refused end at once, and one or two may be under way when the other comes.
  expect(ended.slice(refused.length).indexOf("one")).toBeLessThan(4);
});

describe("answered", () => {
  test("six hundred single issues", async () => {
    const issue =
      "number title state author { login } labels(first: 5) { nodes { name } } assignees(first: 5) { nodes { login } }";
    const one = (at: number) => `issueOrPullRequest(number: ${(at % 30) + 1}) { ...I ...P }`;
    const query = `query { ${repository} { ${aliases(600, one)} } } fragment I on Issue { ${issue} } fragment P on PullRequest { ${issue} }`;
    expect((await ask(query)).body.errors).toBeUndefined();
  });

  test("ten searches and twenty filters, at a point for each beyond the fifth", async () => {
    const searches = aliases(10, (at) => `search(type: ISSUE, query: "w${at}", first: 1) { issueCount }`);
    const filters = aliases(20, (at) => `issues(filterBy: {mentioned: "z${at}"}) { totalCount }`);
    const { body } = await ask(`query { rateLimit { cost } ${searches} ${repository} { ${filters} } }`);
    expect(body.errors).toBeUndefined();
    expect(body.data.rateLimit.cost).toBe(26);
  });

  test("a search for many words, at the price of as many as find as much", async () => {
    const words = Array.from({ length: 60 }, (_, at) => `w${at}`).join(" ");
    const searches = aliases(10, () => `search(type: ISSUE, query: "in:comments ${words}", first: 1) { issueCount }`);
    const { body } = await ask(`query { rateLimit(dryRun: true) { cost } ${searches} }`);
    expect(body.data.rateLimit.cost).toBe(1 + 10 * 13 - 5);
  });

  test("no more labels than an issue can have are looked for", async () => {
    const labels = JSON.stringify(Array.from({ length: 101 }, (_, at) => `l${at}`));
    for (const filter of [`labels: ${labels}`, `filterBy: {labels: ${labels}}`]) {
      const { body } = await ask(`query { ${repository} { issues(first: 1, ${filter}) { totalCount } } }`);
      expect(body.errors).toMatchObject([{ type: "ARGUMENT_LIMIT", path: ["repository", "issues"] }]);
    }
  });

  test("a filter counts once for each parent", async () => {
    const query = `query { rateLimit(dryRun: true) { cost } viewer { repositories(first: 100) { nodes { issues(filterBy: {mentioned: "z"}) { totalCount } } } } }`;
    expect((await ask(query)).body.data.rateLimit.cost).toBe(1 + 95);
  });

  test("the whole schema, as every client asks for it", async () => {
    const { body } = await ask(getIntrospectionQuery());
    expect(body.errors).toBeUndefined();
    expect(body.data.__schema.types.length).toBeGreaterThan(50);
  });
});

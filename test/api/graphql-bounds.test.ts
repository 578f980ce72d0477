/** What one query may ask for. Each refusal comes before anything is read, and before points are taken. */
import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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

describe("refused at once, for no points", () => {
  test.each([
    ["fields that double with each level", () => nested(29, ["a", "b"])],
    ["fields that triple with each level", () => nested(29, ["a", "b", "c"])],
    [
      "a fragment of many fields at many places",
      () => `query { ${aliases(300, () => "viewer { ...F }")} } fragment F on User { ${aliases(100, () => "login")} }`,
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
    expect(refused.used).toBe(used);
  });

  test("a filter whose text comes in a variable", async () => {
    const filters = aliases(21, (at) => `issues(filterBy: $f, first: ${at + 1}) { totalCount }`);
    const query = `query($f: IssueFilters) { ${repository} { ${filters} } }`;
    expect((await ask(query, { f: { mentioned: "z" } })).body).toMatchObject(REFUSED);
    expect((await ask(query, { f: { states: ["OPEN"] } })).body.errors).toBeUndefined();
  });
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

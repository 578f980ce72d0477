import { afterAll, beforeAll, expect, test } from "vitest";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let variables: { o: string; n: string };
beforeAll(async () => {
  world = await openApiWorld({ issues: 30, repositories: 1 });
  const [o, n] = (world.repositories[0]?.fullName ?? "/").split("/") as [string, string];
  variables = { o, n };
});
afterAll(() => world?.[Symbol.asyncDispose]());

const NEXT = "x-github-next-global-id";
// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

/** What the mirror and the simulated service answer: they must be equal. */
async function answered(query: string, given: object, form: string | undefined): Promise<Body> {
  const headers = { [NEXT]: form };
  const { body: ours } = await world.query(query, given, { headers });
  const body = JSON.stringify({ query, variables: given });
  const theirs = await askAt(world.upstream.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body, headers });
  expect(ours).toEqual(theirs.body);
  return ours;
}

const ALL = `query($o: String!, $n: String!) { viewer { id } repository(owner: $o, name: $n) { id owner { id }
  labels(first: 5) { nodes { id } } milestones(first: 5) { nodes { id } }
  issues(first: 30) { nodes { id author { __typename ... on User { id } ... on Bot { id } } assignees(first: 3) { nodes { id } }
    comments(first: 5) { nodes { id } } } }
  pullRequests(first: 30) { nodes { id reviews(first: 5) { nodes { id comments(first: 5) { nodes { id } } } } } } } }`;

function idsIn(value: Body): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "id" ? [String(inner)] : idsIn(inner)));
}

test("the header chooses the form of every id, also where the same question was answered before", async () => {
  const [plain, next, zero, again] = [undefined, "1", "0", "1"].map((form) => () => answered(ALL, variables, form));
  const before = idsIn(await plain?.());
  expect(before.some((id) => !id.includes("_"))).toBe(true);
  const after = idsIn(await next?.());
  expect(after).toHaveLength(before.length);
  expect(after.filter((id) => !/^[A-Z]+_/.test(id))).toEqual([]);
  expect(idsIn(await zero?.())).toEqual(before);
  expect(idsIn(await again?.())).toEqual(after);
});

test("an id of the older form finds its node, and a warning names the newer one", async () => {
  const old = idsIn((await answered(ALL, variables, undefined)).data).find((id) => !id.includes("_")) as string;
  for (const form of [undefined, "1"]) {
    const { data, extensions } = await answered(
      "query($i: ID!) { node(id: $i) { id } nodes(ids: [$i]) { id } }",
      { i: old },
      form,
    );
    const [{ legacy_global_id, next_global_id }] = extensions.warnings.map((one: Body) => one.data);
    expect(extensions.warnings).toHaveLength(1);
    expect(legacy_global_id).toBe(old);
    expect(data.node.id).toBe(form === "1" ? next_global_id : old);
    expect(
      (await answered("query($i: ID!) { node(id: $i) { id } }", { i: next_global_id }, form)).extensions,
    ).toBeUndefined();
  }
});

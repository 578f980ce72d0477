/** How many statements one document makes, and how many of them at a time. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { countStatements } from "../support/statements.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let at: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 20, repositories: 1, env: { READ_CONNECTIONS: "6" } });
  const [owner = "", name = ""] = world.repositories[0]?.fullName.split("/") ?? [];
  at = `repository(owner: "${owner}", name: "${name}")`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const aliases = (count: number, field: (at: number) => string) =>
  Array.from({ length: count }, (_, one) => `a${one}: ${field(one)}`).join(" ");

test("half of the connections are there for others, whatever one document asks for", async () => {
  using statements = countStatements();
  const { body } = await world.query(
    `{ ${at} { ${aliases(60, (one) => `issues(first: 1, labels: ["l${one}"]) { totalCount nodes { id } } b${one}: pullRequests(first: ${one + 1}) { nodes { id } }`)} } }`,
  );
  expect(body.errors).toBeUndefined();
  const lists = /pull_requests/;
  expect(statements.texts().filter((text) => lists.test(text)).length).toBeGreaterThan(10);
  expect(statements.connections(lists)).toBeLessThanOrEqual(3);
});

test("whatever a mutation names is looked for together, before it is paid for", async () => {
  const { body } = await world.query(`{ ${at} { issues(first: 20) { nodes { id } } } }`);
  const ids: string[] = body.data.repository.issues.nodes.map(({ id }: { id: string }) => id);
  expect(ids).toHaveLength(20);
  const asked = async (labelIds: string[]) => {
    using statements = countStatements();
    const document =
      "mutation ($input: AddLabelsToLabelableInput!) { addLabelsToLabelable(input: $input) { clientMutationId } }";
    await world.query(document, { input: { labelableId: ids[0], labelIds } }, { token: UPSTREAM_TOKEN });
    return statements.texts().filter((text) => /issues/.test(text)).length;
  };
  const alone = await asked(ids.slice(0, 1));
  expect(alone).toBeGreaterThan(0);
  // There may be pull requests among them, which are of another table.
  expect(await asked(ids)).toBeLessThanOrEqual(alone + 1);
});

test("names that no repository has are looked for together", async () => {
  const asked = async (count: number) => {
    using statements = countStatements();
    const { body } = await world.query(
      `{ ${aliases(count, (one) => `repository(owner: "nobody", name: "n${one}") { id }`)} }`,
    );
    expect(body.errors).toHaveLength(count);
    return statements.texts().filter((text) => text.includes("former_names")).length;
  };
  expect(await asked(1)).toBe(1);
  // On a busy machine a level may give way, and the rest of it asks by itself.
  expect(await asked(100)).toBeLessThan(10);
});

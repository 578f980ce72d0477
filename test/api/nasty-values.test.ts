/**
 * Each parameter of an operation and each argument of the schema gets values that nobody should send. The list of
 * parameters is what the web process describes, so a new one is covered by itself. Here a part of the values is asked,
 * and by the proof `corpus` all.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import type { Fuzz } from "../corpus/measured-web.ts";
import { IN_ADDRESSES, nastyQueries, nastyReads, type Usual, usualIn } from "../corpus/nasty.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let usual: Usual;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 20, env: { RATE_LIMIT_USER: "0" } });
  usual = await usualIn(world);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Every fourth, from another one on for each `from`: all parameters and all values are met, and not each with each. */
function someOf<T>(all: readonly T[], from = 0): T[] {
  return all.filter((_, at) => (at + from) % 4 === 0);
}

/** What went wrong, in words, by what was asked. */
async function faultsOf(asked: readonly Fuzz[]): Promise<string[]> {
  const faults: string[] = [];
  const waiting = [...asked];
  const ask = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { name, method, path, body } = next;
      const { status, text } = await askAt(world.url, method, path, {
        token: world.token,
        ...(body !== undefined && { body }),
      });
      if (status >= 500 || text.includes("Something went wrong"))
        faults.push(`${status} ${name} ${text.slice(0, 100)}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  return faults.sort();
}

describe("REST", () => {
  test.each(Object.entries(IN_ADDRESSES).map(([what, value], at) => ({ what, value, at })))(
    "$what as a parameter is answered, and not with a fault of ours",
    async ({ value, at }) => {
      const { body: described } = await askAt(world.url, "GET", "/-/openapi.json");
      const reads = nastyReads(described, usual, value);
      expect(reads.length).toBeGreaterThan(100);
      expect(await faultsOf(someOf(reads, at))).toEqual([]);
    },
  );
});

describe("GraphQL", () => {
  test("nasty values as an argument of any field are answered, and not with a fault of ours", async () => {
    const queries = nastyQueries(apiSchema(), usual);
    expect(queries.length).toBeGreaterThan(500);
    expect(await faultsOf(someOf(queries))).toEqual([]);
  });
});

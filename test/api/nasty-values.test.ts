/**
 * Each parameter of an operation and each argument of the schema gets values that nobody should send. The list of
 * parameters is what the web process describes, so a new one is covered by itself.
 */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
} from "graphql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let usual: Record<string, string>;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 20, env: { RATE_LIMIT_USER: "0" } });
  const [first] = world.repositories;
  const [owner = "", repo = ""] = (first?.fullName ?? "").split("/");
  const id = String(first?.id);
  const { body } = await world.get(`/repos/${owner}/${repo}/issues?state=all`);
  const number = String(body[0].number);
  usual = { owner, repo, id, repository_id: id, issue_number: number, pull_number: number, number };
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** As they stand in an address, already encoded. */
const IN_ADDRESSES = {
  NUL: "%00",
  "a NUL within": "a%00b",
  "broken UTF-8": "%E0%A4",
  "a lone surrogate": "%ED%A0%80",
  "another query": "4?state=all",
  dots: "..",
  "encoded dots": "%2e%2e",
  "a slash": "a%2Fb",
  "a backslash": "a%5Cb",
  "a newline": "a%0D%0Ab",
  nothing: "",
  "a blank": "%20",
  "a negative number": "-1",
  "a huge number": "99999999999999999999999999",
  "more than 32 bits": "2147483648",
  "more than 53 bits": "9007199254740993",
  "a fraction": "1.5",
  "an exponent": "1e400",
  "not a number": "NaN",
  "a year that Postgres lacks": "999999-01-01T00:00:00Z",
  "a year before all": "-271821-04-20T00:00:00Z",
  "the year zero": "0000-01-01T00:00:00Z",
  "no date": "2020-13-45",
  "a quote": "%27%22%3B--",
  "a pattern": "%25_%5C",
  braces: "%7B%7D%5B%5D",
  "beyond the basic plane": "%F0%9F%92%A9",
  long: "x".repeat(3_000),
};

interface Parameter {
  method: string;
  path: string;
  name: string;
  in: "path" | "query";
}

interface Described {
  paths: Record<string, Record<string, { parameters?: ({ name: string; in: string } | { $ref: string })[] }>>;
  components: { parameters?: Record<string, { name: string; in: string }> };
}

async function describedParameters(): Promise<Parameter[]> {
  const { body } = await askAt(world.url, "GET", "/-/openapi.json");
  const { paths, components } = body as Described;
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { parameters = [] }]) =>
      parameters.flatMap((parameter): Parameter[] => {
        const found = "$ref" in parameter ? components.parameters?.[parameter.$ref.split("/").at(-1) ?? ""] : parameter;
        if (!found) throw new Error(`No parameter is described as ${JSON.stringify(parameter)}`);
        return found.in === "path" || found.in === "query"
          ? [{ method: method.toUpperCase(), path, name: found.name, in: found.in }]
          : [];
      }),
    ),
  );
}

function addressOf({ path, name, in: place }: Parameter, value: string): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, one: string) =>
    one === name && place === "path" ? value : (usual[one] ?? "1"),
  );
  return place === "query" ? `${filled}?${name}=${value}` : filled;
}

/** What went wrong, in words, by what was asked. */
async function faultsOf(asked: readonly (() => Promise<string | null>)[]): Promise<string[]> {
  const faults: string[] = [];
  const waiting = [...asked];
  const ask = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const fault = await next();
      if (fault !== null) faults.push(fault);
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  return faults.sort();
}

describe("REST", () => {
  test.each(Object.entries(IN_ADDRESSES))(
    "%s as any parameter is answered, and not with a fault of ours",
    async (_, value) => {
      const parameters = (await describedParameters()).filter(({ method }) => method === "GET");
      expect(parameters.length).toBeGreaterThan(100);
      const faults = await faultsOf(
        parameters.map((parameter) => async () => {
          const address = addressOf(parameter, value);
          const { status, text } = await askAt(world.url, "GET", address, { token: world.token });
          return status < 500 ? null : `${status} GET ${address.slice(0, 120)} ${text.slice(0, 120)}`;
        }),
      );
      expect(faults).toEqual([]);
    },
  );
});

const TEXTS = [
  "",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udc00x",
  "%",
  "_\\",
  "'\";--",
  "💩",
  "*",
  "x".repeat(3_000),
  "\r\n",
];
const NUMBERS = [0, -1, 1, 101, 2_147_483_647, -2_147_483_648];
const DATES = ["999999-01-01T00:00:00Z", "-271821-04-20T00:00:00Z", "0000-01-01T00:00:00Z", "2020-13-45", "x", ""];

/** Values of an input type, nasty ones, with the rest as the type asks for. */
function nastyValues(type: GraphQLInputType): unknown[] {
  const named = getNamedType(type);
  const own: unknown[] = isEnumType(named)
    ? named.getValues().map(({ name }) => name)
    : isInputObjectType(named)
      ? Object.values(named.getFields()).flatMap((field) =>
          nastyValues(field.type).map((value) => ({ [field.name]: value })),
        )
      : named.name === "Int"
        ? NUMBERS
        : named.name === "Boolean"
          ? [true, false]
          : named.name === "DateTime"
            ? DATES
            : named.name === "URI"
              ? [...TEXTS, "https://github.com/%00", "https://github.com/a/b/issues/99999999999999999999"]
              : TEXTS;
  const isList = isListType("ofType" in type && !isListType(type) ? type.ofType : type);
  return isList ? own.map((value) => [value]) : own;
}

/** The way from the root to every type that can be reached: a selection with a place for what is asked of it. */
function waysTo(schema: ReturnType<typeof apiSchema>): Map<string, (selection: string) => string> {
  const { owner, repo, number } = usual;
  const repository = (inner: string) => `{ repository(owner: "${owner}", name: "${repo}") ${inner} }`;
  const ways = new Map<string, (selection: string) => string>([
    ["Query", (selection) => selection],
    ["Repository", repository],
    ["User", (selection) => `{ user(login: "${owner}") ${selection} }`],
    ["Organization", (selection) => `{ organization(login: "${owner}") ${selection} }`],
    ["Issue", (selection) => repository(`{ issue(number: ${number}) ${selection} }`)],
    ["PullRequest", (selection) => repository(`{ pullRequests(first: 1) { nodes ${selection} } }`)],
    ["Label", (selection) => repository(`{ labels(first: 1) { nodes ${selection} } }`)],
    ["Milestone", (selection) => repository(`{ milestones(first: 1) { nodes ${selection} } }`)],
    [
      "PullRequestReview",
      (selection) => repository(`{ pullRequests(first: 5) { nodes { reviews(first: 1) { nodes ${selection} } } } }`),
    ],
  ]);
  for (const name of ways.keys()) if (!schema.getType(name)) throw new Error(`The schema has no ${name}`);
  return ways;
}

function usualArgument({ name, type }: GraphQLArgument): unknown {
  if (name === "first") return 1;
  return usual[name === "name" ? "repo" : name] ?? nastyValues(type)[0];
}

/** A query for one argument of one field. */
function queryFor(
  field: GraphQLField<unknown, unknown>,
  argument: GraphQLArgument,
  way: (selection: string) => string,
) {
  const bounds =
    field.args.some(({ name }) => name === "first") && argument.name !== "first" && argument.name !== "last";
  const required = field.args.filter(
    (one) => one !== argument && (String(one.type).endsWith("!") || (bounds && one.name === "first")),
  );
  const all = [argument, ...required];
  const named = getNamedType(field.type);
  const inner = !("getFields" in named || "getTypes" in named)
    ? ""
    : isObjectType(named) && named.name.endsWith("Connection")
      ? "{ totalCount nodes { __typename } }"
      : "{ __typename }";
  const declared = all.map(({ name, type }) => `$${name}: ${type}`).join(", ");
  const passed = all.map(({ name }) => `${name}: $${name}`).join(", ");
  const query = `query(${declared}) ${way(`{ it: ${field.name}(${passed}) ${inner} }`)}`;
  const variables = (value: unknown) => ({
    ...Object.fromEntries(required.map((one) => [one.name, usualArgument(one)])),
    [argument.name]: value,
  });
  return { query, variables };
}

describe("GraphQL", () => {
  test("nasty values as any argument of any field are answered, and not with a fault of ours", async () => {
    const schema = apiSchema();
    const asked: (() => Promise<string | null>)[] = [];
    for (const [typeName, way] of waysTo(schema)) {
      for (const field of Object.values((schema.getType(typeName) as GraphQLObjectType).getFields())) {
        for (const argument of field.args) {
          const { query, variables } = queryFor(field, argument, way);
          for (const value of nastyValues(argument.type)) {
            asked.push(async () => {
              const body = JSON.stringify({ query, variables: variables(value) });
              const { status, text } = await askAt(world.url, "POST", "/graphql", { token: world.token, body });
              const isOurs = status >= 500 || text.includes("Something went wrong");
              return isOurs
                ? `${status} ${typeName}.${field.name}(${argument.name}: ${JSON.stringify(value).slice(0, 80)}) ${text.slice(0, 100)}`
                : null;
            });
          }
        }
      }
    }
    expect(asked.length).toBeGreaterThan(500);
    expect(await faultsOf(asked)).toEqual([]);
  });
});

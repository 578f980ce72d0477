/** Values that nobody should send, for every parameter that is described, and every argument of the schema. */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import type { ApiWorld } from "../api/api-world.ts";
import type { Fuzz } from "./measured-web.ts";

/** Values that exist, by the names that parameters and arguments have. */
export type Usual = Readonly<Record<string, string>>;

/** What is there in the first repository. */
export async function usualIn({ repositories, get }: Pick<ApiWorld, "repositories" | "get">): Promise<Usual> {
  const [first] = repositories;
  const [owner = "", repo = ""] = (first?.fullName ?? "").split("/");
  const id = String(first?.id);
  const { body } = await get(`/repos/${owner}/${repo}/issues?state=all`);
  const number = String(body[0].number);
  return { owner, repo, id, repository_id: id, issue_number: number, pull_number: number, number };
}

/** As they stand in an address, already encoded. */
export const IN_ADDRESSES = {
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

export interface Described {
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { parameters?: Record<string, DescribedParameter> };
}

interface DescribedOperation {
  parameters?: (DescribedParameter | { $ref: string })[];
  requestBody?: { content?: { "application/json"?: { schema?: BodySchema } } };
}

interface DescribedParameter {
  name: string;
  in: string;
}

interface BodySchema {
  properties?: Record<string, unknown>;
  oneOf?: BodySchema[];
  anyOf?: BodySchema[];
}

/** An operation, as `/-/openapi.json` describes it. */
export interface Operation {
  method: string;
  path: string;
  parameters: DescribedParameter[];
  /** The names of what its body may have. */
  fields: string[];
}

export function operationsIn({ paths, components }: Described): Operation[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { parameters = [], requestBody }]) => {
      if (path === "/graphql" || !/^(get|post|put|patch|delete)$/.test(method)) return [];
      const found = parameters.map((parameter) => {
        const one = "$ref" in parameter ? components.parameters?.[parameter.$ref.split("/").at(-1) ?? ""] : parameter;
        if (!one) throw new Error(`No parameter is described as ${JSON.stringify(parameter)}`);
        return one;
      });
      const fields = fieldsOf(requestBody?.content?.["application/json"]?.schema);
      return [{ method: method.toUpperCase(), path, parameters: found, fields }];
    }),
  );
}

function fieldsOf(schema: BodySchema = {}): string[] {
  const others = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].flatMap(fieldsOf);
  return [...new Set([...Object.keys(schema.properties ?? {}), ...others])];
}

export function addressOf(
  { path }: Operation,
  usual: Usual,
  nasty?: { name: string; in: string; value: string },
): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, one: string) =>
    one === nasty?.name && nasty.in === "path" ? nasty.value : (usual[one] ?? "1"),
  );
  return nasty?.in === "query" ? `${filled}?${nasty.name}=${nasty.value}` : filled;
}

/** Each parameter of each read with this value. */
export function nastyReads(described: Described, usual: Usual, value: string): Fuzz[] {
  return operationsIn(described)
    .filter(({ method }) => method === "GET")
    .flatMap((operation) =>
      operation.parameters
        .filter((one) => one.in === "path" || one.in === "query")
        .map((one): Fuzz => {
          const path = addressOf(operation, usual, { ...one, value });
          return { name: `GET ${path.slice(0, 120)}`, method: "GET", path };
        }),
    );
}

/** What a body may be that no operation takes. */
const BODIES = [
  "",
  "{}",
  "null",
  "[]",
  "0",
  '"x"',
  "{",
  "[1e999]",
  '{"__proto__":{"a":1},"constructor":null}',
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
];

/** Each writing operation, with bodies that no operation takes, and with each nasty value in each field of its body. */
export function nastyWrites(described: Described, usual: Usual): Fuzz[] {
  return operationsIn(described)
    .filter(({ method }) => method !== "GET")
    .flatMap((operation) => {
      const path = addressOf(operation, usual);
      const asked = (what: string, body: string): Fuzz => ({
        name: `${operation.method} ${path} ${what.slice(0, 100)}`,
        method: operation.method,
        path,
        body,
      });
      return [
        ...BODIES.map((body) => asked(body, body)),
        ...operation.fields.flatMap((field) =>
          [...ANY_VALUES, "x".repeat(70_000)].map((value) =>
            asked(
              `${field}: ${JSON.stringify(value)}`,
              JSON.stringify({ ...usualFields(operation.fields), [field]: value }),
            ),
          ),
        ),
      ];
    });
}

/** The other fields of a body. They are valid, so that the nasty one is looked at. */
function usualFields(fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(fields.filter((one) => /^(title|name|body)$/.test(one)).map((one) => [one, "usual"]));
}

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
const ANY_VALUES = [...TEXTS, null, true, 0, -1, 1e300, 2 ** 53, [], {}, [null], [[]], [{}], [""], { a: { b: [] } }];
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

/** The path from the root to each type that can be reached: a selection with a place for the tested field. */
export function waysTo(
  schema: GraphQLSchema,
  { owner, repo, number }: Usual,
): Map<string, (selection: string) => string> {
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

function usualArgument({ name, type }: GraphQLArgument, usual: Usual): unknown {
  if (name === "first") return 1;
  return usual[name === "name" ? "repo" : name] ?? nastyValues(type)[0];
}

/** A query for one argument of one field. */
function queryFor(
  field: GraphQLField<unknown, unknown>,
  argument: GraphQLArgument,
  { way, usual }: { way: (selection: string) => string; usual: Usual },
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
    ...Object.fromEntries(required.map((one) => [one.name, usualArgument(one, usual)])),
    [argument.name]: value,
  });
  return { query, variables };
}

/** Each argument of each field that leads somewhere, with each nasty value. */
export function nastyQueries(schema: GraphQLSchema, usual: Usual): Fuzz[] {
  return Array.from(waysTo(schema, usual)).flatMap(([typeName, way]) =>
    // No type can say that a way leads to an object.
    Object.values((schema.getType(typeName) as GraphQLObjectType).getFields()).flatMap((field) =>
      field.args.flatMap((argument) => {
        const { query, variables } = queryFor(field, argument, { way, usual });
        return nastyValues(argument.type).map((value) =>
          asGraphql(`${typeName}.${field.name}(${argument.name}: ${shortly(value)})`, query, variables(value)),
        );
      }),
    ),
  );
}

/**
 * Each field of each mutation's input with each nasty value, and the rest as it may be. @param id of something that is
 * there
 */
export function nastyMutations(schema: GraphQLSchema, id: string): Fuzz[] {
  return Object.values(schema.getMutationType()?.getFields() ?? {}).flatMap(({ name, args }) => {
    const type = getNamedType(args[0]?.type);
    if (!isInputObjectType(type)) throw new Error(`The mutation ${name} takes no input`);
    const fields = Object.values(type.getFields());
    const query = `mutation($input: ${type.name}!) { ${name}(input: $input) { clientMutationId } }`;
    const rest = Object.fromEntries(
      fields
        .filter((field) => isNonNullType(field.type))
        .map((field) => [field.name, getNamedType(field.type).name === "ID" ? id : nastyValues(field.type)[0]]),
    );
    return fields.flatMap((field) =>
      nastyValues(field.type).map((value) =>
        asGraphql(`${name}(${field.name}: ${shortly(value)})`, query, { input: { ...rest, [field.name]: value } }),
      ),
    );
  });
}

export function asGraphql(name: string, query: string, variables: object = {}): Fuzz {
  return { name: `GraphQL ${name}`, method: "POST", path: "/graphql", body: JSON.stringify({ query, variables }) };
}

function shortly(value: unknown): string {
  return JSON.stringify(value).slice(0, 80);
}

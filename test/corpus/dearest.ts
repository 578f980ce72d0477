/**
 * Requests that try to cost as much as they can, each made by its number alone: parameters of every read, words of
 * searches, arguments of the schema and bodies of deliveries, at their dearest.
 */
import {
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isListType,
  isObjectType,
} from "graphql";
import type { Fields } from "../../src/json.ts";
import { draws } from "../support/graphql-queries.ts";
import type { Fuzz } from "./measured-web.ts";
import { addressOf, asGraphql, type Described, type Operation, operationsIn, type Usual, waysTo } from "./nasty.ts";

export interface Dearest {
  described: Described;
  schema: GraphQLSchema;
  usual: Usual;
  /** Signs a payload as the holder of the first repository's secret, and says how it is sent. */
  delivery: (event: string, body: string) => Promise<Fuzz>;
  /** Payloads of events, of the first repository. */
  payloads: readonly { event: string; payload: Fields }[];
}

/** Draws that are the same for the same number. */
class Draw {
  readonly #next: () => number;
  constructor(seed: number) {
    this.#next = draws(seed);
  }
  below(count: number): number {
    return Math.floor(this.#next() * count);
  }
  one<T>(of: readonly T[]): T {
    const found = of[this.below(of.length)];
    if (found === undefined) throw new Error("There is nothing to draw from");
    return found;
  }
  /** A length that is often small, and sometimes as long as it may be. */
  length(most: number): number {
    return Math.max(1, Math.round(most ** this.#next()));
  }
}

const times = (count: number, each: (at: number) => string, between: string) =>
  Array.from({ length: count }, (_, at) => each(at)).join(between);

/** Words that nearly everything, or nothing, has. */
const WORDS = ["the", "a", "e", "bug", "fix", "zz", "pagination", "🎉", "quote\\"];
const QUALIFIERS = [
  ...[
    "label",
    "author",
    "assignee",
    "involves",
    "commenter",
    "mentions",
    "milestone",
    "user",
    "org",
    "repo",
    "in",
    "is",
  ],
  ...[
    "state",
    "no",
    "type",
    "created",
    "updated",
    "closed",
    "comments",
    "head",
    "base",
    "team",
    "language",
    "topic",
    "stars",
  ],
];

/** A search as dear as its length allows. */
function dearestSearch(draw: Draw, usual: Usual): string {
  const values = [
    "x",
    "open",
    "comments",
    "title",
    "body",
    "issue",
    usual.owner ?? "",
    `${usual.owner}/${usual.repo}`,
    ">=0",
    "*",
    '"the quick"',
  ];
  const term = () => {
    const negated = draw.one(["", "", "-"]);
    const qualifier = () =>
      `${draw.one(QUALIFIERS)}:${draw.one(values)}${draw.one(["", "", "*", `,${draw.one(values)}`])}`;
    return negated + draw.one([() => draw.one(WORDS), () => `"${draw.one(WORDS)} ${draw.one(WORDS)}"`, qualifier])();
  };
  const same = term();
  const count = draw.length(300);
  const words = draw.one([
    () => times(count, () => term(), draw.one([" ", " ", " OR ", " AND "])),
    () => times(count, (at) => `${same}${at}`, " "),
    () => `${"(".repeat(count)}${term()}${" OR x)".repeat(count)}`,
    () => times(count, (at) => `-word${at}`, " "),
  ])();
  return draw.one(["", "", "is:issue ", `repo:${usual.owner}/${usual.repo} `]) + words;
}

/** A value of a parameter of the query. */
function dearestValue(name: string, draw: Draw, usual: Usual): string {
  if (name === "q") return dearestSearch(draw, usual);
  if (name === "per_page") return "100";
  if (name === "page") return String(draw.one([1, 2, 1_000, 1_000_000, 2_147_483_647]));
  if (name === "state") return "all";
  if (name === "sort")
    return draw.one(["created", "updated", "comments", "reactions", "popularity", "long-running", "best-match"]);
  if (name === "direction" || name === "order") return draw.one(["asc", "desc"]);
  if (name === "since") return "1970-01-01T00:00:00Z";
  return draw.one([
    () => times(draw.length(2_400), (at) => `l${at}`, ","),
    () => "x".repeat(draw.length(15_000)),
    () => "%25".repeat(draw.length(2_000)),
    () => draw.one(["*", "none", "all", usual.owner ?? "", "1"]),
  ])();
}

/** The longest address that the server reads. */
const LONGEST_PATH = 15_000;

function dearestRead(operations: readonly Operation[], draw: Draw, usual: Usual): Fuzz {
  const operation = draw.one(operations);
  const query = new URLSearchParams();
  for (const { name, in: place } of operation.parameters)
    if (place === "query" && (name === "q" || draw.below(3) > 0)) query.set(name, dearestValue(name, draw, usual));
  const accept = draw.one([
    "application/vnd.github+json",
    "application/vnd.github.full+json",
    "application/vnd.github.text-match+json",
  ]);
  const path = `${addressOf(operation, usual)}?${query}`.slice(0, LONGEST_PATH);
  return { name: `GET ${path.slice(0, 160)}`, method: "GET", path, headers: { Accept: accept } };
}

type Field = GraphQLField<unknown, unknown>;

/** A value of an argument, written as GraphQL writes it. */
function dearestArgument(argument: Field["args"][number], draw: Draw, usual: Usual): string {
  const { name, type } = argument;
  const named = getNamedType(type);
  const given = usual[name === "name" ? "repo" : name === "login" ? "owner" : name];
  const text = () =>
    JSON.stringify(draw.one(["", "x", "the", "%", "\\", "x".repeat(draw.length(5_000)), given ?? "x"]));
  const single = (): string => {
    if (name === "query") return JSON.stringify(dearestSearch(draw, usual));
    if (name === "type" && named.name === "SearchType") return draw.one(["ISSUE", "REPOSITORY"]);
    if (named.name === "Int")
      return name === "first" || name === "last" ? "100" : String(given ?? draw.one([1, 2_147_483_647]));
    if (named.name === "Boolean") return "true";
    if (named.name === "DateTime") return '"1970-01-01T00:00:00Z"';
    if (named.name === "ID") return JSON.stringify(draw.one(["", "x", "x".repeat(draw.length(5_000)), "MDQ6VXNlcjE="]));
    if ("getValues" in named) return draw.one(named.getValues()).name;
    if ("getFields" in named && !isObjectType(named))
      return `{${Object.values(named.getFields())
        .map((field) => `${field.name}: ${dearestArgument(field as never, draw, usual)}`)
        .join(", ")}}`;
    return given !== undefined && draw.below(2) === 0 ? JSON.stringify(given) : text();
  };
  return isListType("ofType" in type && !isListType(type) ? type.ofType : type)
    ? `[${times(draw.length(3_000), single, ", ")
        .slice(0, 30_000)
        .replace(/,[^,]*$/, "")}]`
    : single();
}

function dearestSelection(field: Field, draw: Draw, usual: Usual, depth: number): string {
  // Both ends of a list are never asked for together.
  const left = field.args.some(({ name }) => name === "first") ? ["last", "before", "after"] : [];
  const args = field.args.filter(
    ({ name, type }) => !left.includes(name) && (name === "first" || String(type).endsWith("!") || draw.below(2) === 0),
  );
  const given = args.map((one) => `${one.name}: ${dearestArgument(one, draw, usual)}`).join(", ");
  const named = getNamedType(field.type);
  const call = `${field.name}${given === "" ? "" : `(${given})`}`;
  if (!isCompositeType(named)) return call;
  if (!isObjectType(named) || depth === 0) return `${call} { __typename }`;
  const fields = Object.values(named.getFields());
  const inner = named.name.endsWith("Connection")
    ? fields.filter(({ name }) => name === "totalCount" || name === "nodes" || name === "edges")
    : Array.from({ length: 1 + draw.below(4) }, () => draw.one(fields));
  const below = inner.map((one, at) => `b${at}: ${dearestSelection(one, draw, usual, depth - 1)}`);
  return `${call} { __typename ${below.join(" ")} }`;
}

function dearestQuery({ schema, usual }: Dearest, draw: Draw): Fuzz {
  const [typeName, way] = draw.one([...waysTo(schema, usual)]);
  const type = schema.getType(typeName);
  if (!isObjectType(type)) throw new Error(`The schema has no ${typeName}`);
  const field = draw.one(Object.values(type.getFields()));
  const aliases = draw.length(400);
  const one = dearestSelection(field, draw, usual, draw.below(5));
  // The same often, or a little different each time, or under one name, so that all of them might conflict.
  const how = draw.below(4);
  const selection = times(
    how === 0 ? 1 : aliases,
    (at) =>
      how === 3
        ? `a: ${one.replace(/"x"/g, `"x${at}"`)}`
        : `a${at}: ${how === 2 ? one.replace(/"(x|the)"/g, `"$1${at}"`) : one}`,
    " ",
  ).slice(0, 200_000);
  return asGraphql(`dearest ${typeName}.${field.name} × ${aliases}`, `query ${way(`{ ${selection} }`)}`);
}

/** A part of a body that costs more than its bytes, so long as asked. */
const COSTLY: readonly ((bytes: number) => string)[] = [
  (bytes) => `[${"[],".repeat(bytes / 3)}[]]`,
  (bytes) => `[${"{},".repeat(bytes / 3)}{}]`,
  (bytes) => `[${"0,".repeat(bytes / 2)}0]`,
  (bytes) => `{${times(Math.ceil(bytes / 12), (at) => `"k${at}":0`, ",")}}`,
  (bytes) => "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
  (bytes) => `${'{"a":'.repeat(bytes / 6)}1${"}".repeat(bytes / 6)}`,
  (bytes) => `"${"\\u0041".repeat(bytes / 6)}"`,
  (bytes) => "9".repeat(bytes),
  (bytes) => `"${"x".repeat(bytes)}"`,
];
const LONGEST_BODY = 24_000_000;

async function dearestDelivery({ payloads, delivery }: Dearest, draw: Draw): Promise<Fuzz> {
  const { event, payload } = draw.one(payloads);
  const bytes = draw.length(LONGEST_BODY);
  const text = JSON.stringify(payload);
  const costly = draw.one(COSTLY)(bytes);
  const at = draw.one([0, 1, 2]);
  const key = draw.one(["odd", "issue", "commits", "sender", "__proto__", "action"]);
  const body =
    at === 0
      ? `{"${key}":${costly},${text.slice(1)}`
      : at === 1
        ? `${text.slice(0, -1)},"${key}":${costly}}`
        : text.replace('"repository":{', () => `"repository":{"${key}":${costly},`);
  const sent = await delivery(event, body);
  return { ...sent, name: `delivery of ${event}, ${body.length} bytes, "${key}":${costly.slice(0, 12)}…` };
}

/** The case of this number. */
export async function dearestCase(seed: number, from: Dearest, reads: readonly Operation[]): Promise<Fuzz> {
  const draw = new Draw(seed);
  const make = draw.one([
    () => dearestRead(reads, draw, from.usual),
    () => dearestRead(reads, draw, from.usual),
    () => dearestQuery(from, draw),
    () => dearestQuery(from, draw),
    () => dearestDelivery(from, draw),
  ]);
  const fuzz = await make();
  return { ...fuzz, name: `case ${seed}: ${fuzz.name}` };
}

/** Every read that has something to choose. */
export function readsIn(described: Described): Operation[] {
  return operationsIn(described).filter(
    ({ method, parameters }) => method === "GET" && parameters.some((one) => one.in === "query"),
  );
}

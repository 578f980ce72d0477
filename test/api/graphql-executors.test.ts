/** Queries are answered by our own executor; graphql-js's is the judge of what the answer is. */

import {
  buildSchema,
  execute,
  type GraphQLError,
  type GraphQLSchema,
  getIntrospectionQuery,
  getOperationAST,
  getVariableValues,
} from "graphql";
import { LRUCache } from "lru-cache";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Searches } from "../../src/api/call/searches.ts";
import { kindsOf, wholeAccess } from "../../src/api/callers/permissions.ts";
import { CallerQuota } from "../../src/api/callers/quota.ts";
import { UpstreamForCallers } from "../../src/api/callers/upstream-for-callers.ts";
import { GraphqlCall } from "../../src/api/graphql/call/call.ts";
import { type Count, openIssueTexts } from "../../src/api/graphql/call/kept-lists.ts";
import { Documents } from "../../src/api/graphql/documents/documents.ts";
import { shownError } from "../../src/api/graphql/run/errors.ts";
import { type Executed, executePlan } from "../../src/api/graphql/run/execution.ts";
import { Plans } from "../../src/api/graphql/run/plans.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { Announcements } from "../../src/api/streams/announcements.ts";
import { ChangeStreams } from "../../src/api/streams/change-streams.ts";
import { LogEnd } from "../../src/events/log-end.ts";
import { openMirrorReader } from "../../src/mirror/reader.ts";
import { LeftOut } from "../../src/mirror/render/left-out.ts";
import { Kept, Reading, RepositoryVersionsReader } from "../../src/mirror/unchanged/unchanged.ts";
import { Pace } from "../../src/work/pace.ts";
import { poolsIn } from "../corpus/query-pools.ts";
import { PATIENCE_MS } from "../support/bounds.ts";
import { type GeneratedQuery, generateQuery } from "../support/graphql-queries.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const SEEDS = Number(process.env.GRAPHQL_SEEDS ?? 120);

interface Shown {
  data: string;
  errors: string[];
}

interface Answers {
  ours: Shown[];
  theirs: Shown;
}

/** An answer that is kept is shown from the third time on: by then it is known what the answer depends on. */
const TIMES = 4;
/** Which of them is written in the smallest slices. */
const SLICED = 1;

/** Answers null if the text is no query. Each execution gets a context of its own. */
async function answersOf(
  schema: GraphQLSchema,
  { query, variables }: GeneratedQuery,
  newContext: (mayRemember: boolean) => unknown,
): Promise<Answers | null> {
  const document = await new Documents(schema).read(query, "somebody");
  if (!("kind" in document)) return null;
  const operation = getOperationAST(document);
  if (!operation) return null;
  const coerced = getVariableValues(schema, operation.variableDefinitions ?? [], variables, { hideSuggestions: true });
  if (coerced.errors) return null;
  const plan = new Plans(schema).of(document.definitions, operation, coerced.variableValues);
  if (!plan) throw new Error("A query was not planned");
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const ours: Executed[] = [];
  for (let time = 0; time < TIMES; time++) {
    const pace = new Pace(time === SLICED ? 0 : PATIENCE_MS);
    const context = newContext(true);
    ours.push(await executePlan({ plan, variables: coerced.variableValues, context, signal, pace }));
  }
  const { data, errors = [] } = await execute({
    schema,
    document,
    variableValues: variables,
    contextValue: newContext(false),
    hideSuggestions: true,
  });
  const shown = (all: readonly GraphQLError[]) => all.map((error) => JSON.stringify(shownError(error))).sort();
  return {
    ours: ours.map((one) => ({ data: one.data, errors: shown(one.errors) })),
    theirs: { data: JSON.stringify(data), errors: shown(errors) },
  };
}

/** Whatever a resolver may do, as its field's argument says. */
const TOY = buildSchema(`
  enum Way { VALUE NULL ABSENT THROWN RETURNED LATER LATER_NULL LATER_THROWN LATE LATE_THROWN WRONG }
  enum Colour { RED GREEN }
  scalar Anything
  interface Named { id(way: Way): ID! name(way: Way): String other(way: Way): Named }
  type Thing implements Named {
    id(way: Way): ID! name(way: Way): String other(way: Way): Named
    text(way: Way): String mustText(way: Way): String! count(way: Way): Int share(way: Way): Float isTrue(way: Way): Boolean!
    colour(way: Way): Colour anything(way: Way): Anything
    thing(way: Way): Thing mustThing(way: Way): Thing! any(way: Way): Any
    things(way: Way): [Thing] mustThings(way: Way): [Thing!]! anys(way: Way): [Any!] texts(way: Way): [String!] grid(way: Way): [[Int]]
  }
  type Place implements Named { id(way: Way): ID! name(way: Way): String other(way: Way): Named place(way: Way): Place! thing(way: Way): Thing }
  union Any = Thing | Place
  type Mutation { set(to: Int, way: Way): Int get: Int fail(way: Way): Int! thing(way: Way): Thing }
  type Query { thing(way: Way): Thing mustThing(way: Way): Thing! things(way: Way): [Thing] any(way: Way): Any named(way: Way): Named }
`);

const LEAVES: Record<string, readonly unknown[]> = {
  ID: ["I_1", 12, 'quo"te'],
  String: ["plain", 'with "quotes" \\ and \n lines', "\u0001 \u2028 \ud800 😀", 3, true, "a".repeat(200)],
  Int: [0, -1, "12", true, 2 ** 31, 1.5, "x"],
  Float: [0.1, 1e21, -0, "3.5", Number.NaN],
  Boolean: [true, false, 1],
  Colour: ["RED", "BLUE"],
  Anything: [{ a: [1, null] }, "text", 4, true],
};

function toyValue(type: string, at: number): unknown {
  const list = /^\[(.*)\]!?$/.exec(type);
  if (list) return [0, 1, 2].map((index) => (index === at % 7 ? null : toyValue(list[1] as string, at + index)));
  const name = type.replace("!", "");
  const leaves = LEAVES[name];
  if (leaves) return leaves[at % leaves.length];
  const kind = name === "Any" || name === "Named" ? (at % 2 === 0 ? "Thing" : "Place") : name;
  // A resource that is met again is the same object, as it is in the mirror's answers.
  return { kind, rest: {}, at: at % 5 };
}

function prepareToy(): void {
  for (const type of Object.values(TOY.getTypeMap())) {
    if ("resolveType" in type) type.resolveType = ({ kind }: { kind: string }) => kind;
    if (!("getFields" in type) || type.name.startsWith("__")) continue;
    for (const [at, field] of Object.values(type.getFields()).entries()) {
      if (!("resolve" in field)) continue;
      field.resolve = (source: { at?: number } | undefined, { way }: { way?: string }, known: Map<string, unknown>) => {
        const name = `${type.name}.${field.name} ${source?.at}`;
        const fault = () => new Error(`${name} fails`);
        const value = () => {
          const made = known.get(name) ?? toyValue(String(field.type), at + (source?.at ?? 0));
          known.set(name, made);
          return made;
        };
        const late = () => new Promise((resolve) => setImmediate(resolve));
        switch (way ?? "VALUE") {
          case "NULL":
            return null;
          case "ABSENT":
            return undefined;
          case "THROWN":
            throw fault();
          case "RETURNED":
            return fault();
          case "LATER":
            return Promise.resolve(value());
          case "LATER_NULL":
            return Promise.resolve(null);
          case "LATER_THROWN":
            return Promise.reject(fault());
          case "LATE":
            return late().then(value);
          case "LATE_THROWN":
            return late().then(() => Promise.reject(fault()));
          case "WRONG":
            return "neither object nor list";
          default:
            return value();
        }
      };
    }
  }
}

const WAYS = {
  way: [
    "VALUE",
    "VALUE",
    "VALUE",
    "VALUE",
    "LATER",
    "LATE",
    "NULL",
    "THROWN",
    "RETURNED",
    "LATER_THROWN",
    "LATE_THROWN",
    "ABSENT",
    "LATER_NULL",
    "WRONG",
  ],
};

test(`what resolvers answer, throw and promise becomes the same text: ${SEEDS * 2} queries`, async () => {
  prepareToy();
  let [valid, failed] = [0, 0];
  for (let seed = 0; seed < SEEDS * 2; seed++) {
    const generated = generateQuery(TOY, seed, WAYS);
    const answers = await answersOf(TOY, generated, () => new Map());
    if (!answers) continue;
    valid += 1;
    if (answers.theirs.errors.length > 0) failed += 1;
    for (const [time, ours] of answers.ours.entries())
      if (time !== SLICED) expect(ours, generated.query).toEqual(answers.theirs);
      else expect(withoutRaces(ours), generated.query).toEqual(withoutRaces(answers.theirs));
  }
  expect(valid).toBeGreaterThan(SEEDS);
  expect(failed).toBeGreaterThan(SEEDS * 0.4);
});

/**
 * One error makes a place null. Other errors below that place are told only if they came before. Which ones did is a
 * matter of time, so all of them count as one.
 */
function withoutRaces({ data, errors }: Shown): Shown {
  const told = errors.map((text) => {
    const path = (JSON.parse(text).path ?? []) as (string | number)[];
    let value = JSON.parse(data);
    let depth = 0;
    for (; depth < path.length && value !== null; depth++) value = value[path[depth] as string];
    return depth < path.length ? `null at ${path.slice(0, depth).join(".")}` : text;
  });
  return { data, errors: [...new Set(told)].sort() };
}

test.each([
  "mutation { a: set(to: 1) b: get c: set(to: 2) d: get __typename e: get }",
  "mutation { a: set(to: 1, way: LATE) b: get c: set(to: 2, way: LATER) d: get e: set(way: LATE_THROWN) f: get }",
  "mutation { a: set(to: 1, way: LATE) b: fail(way: LATE_THROWN) c: set(to: 2) }",
  "mutation { a: thing { text id } b: set(to: 3) c: thing { text id other { name } } }",
])("the fields of a mutation take effect one after another: %s", async (query) => {
  prepareToy();
  const { set, get, fail } = TOY.getMutationType()?.getFields() ?? {};
  if (!set || !get || !fail) throw new Error("The schema has no such mutations");
  const ways = set.resolve;
  const order: string[] = [];
  set.resolve = async (source, args, known, info) => {
    await ways?.(source, args, known, info);
    order.push(`set ${args.to}`);
    known.set("set", args.to);
    return args.to;
  };
  get.resolve = (_source, _args, known) => {
    order.push(`get ${known.get("set")}`);
    return known.get("set");
  };
  const answers = await answersOf(TOY, { query, variables: {} }, () => new Map());
  if (!answers) throw new Error("The mutation is none");
  for (const ours of answers.ours) expect(ours).toEqual(answers.theirs);
  const each = order.length / (TIMES + 1);
  for (let at = each; at < order.length; at += each) expect(order.slice(at, at + each)).toEqual(order.slice(0, each));
});

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld({ issues: 40 });
});
afterAll(() => world?.[Symbol.asyncDispose]());

test(`the mirror's own schema answers the same by both: ${SEEDS} queries`, async () => {
  const schema = apiSchema();
  const { ctx, userId } = world;
  await using announcements = new Announcements(ctx);
  const changes = new ChangeStreams({ readDb: ctx.db, end: new LogEnd(ctx.db, Math.random) }, announcements);
  const payer = { kind: "user" as const, quotaName: "u", hourlyLimit: null, class: "", scopes: null };
  const access = wholeAccess("all");
  const token = { id: "t", userId, kinds: kindsOf(null, true), repositories: "all" as const, access, payer };
  const caller = { ...payer, userId, by: { of: "own" as const, token } };
  await using mirror = openMirrorReader({
    leftOut: new LeftOut(ctx),
    ...ctx,
    reads: ctx.db,
    repositoryVersions: new RepositoryVersionsReader(ctx.config),
    replicas: null,
  });
  const quota = new CallerQuota(ctx);
  await using resources = new AsyncDisposableStack();
  resources.defer(() => quota.close());
  const upstream = new UpstreamForCallers(ctx, quota);
  const counts = new Kept<Count>({ maxBytes: 1_000_000, bytesOf: () => 50 });
  const texts = openIssueTexts(1_000_000);
  const newContext = (mayRemember: boolean) =>
    new GraphqlCall({
      ctx: {
        ...ctx,
        upstream,
        mirror,
        readDb: ctx.db,
        searches: new Searches(ctx.db, 4),
        forwarded: null,
        unshownAccounts: new LRUCache({ max: 10 }),
        stopping: new AbortController().signal,
      },
      db: ctx.db,
      searchDb: ctx.db,
      caller,
      access,
      api: world.url,
      cost: { points: 1, nodeCount: 1 },
      figures: null,
      requestId: "test",
      changes,
      beyond: null,
      isForMirror: false,
      hasNextIds: false,
      reading: new Reading(mirror.repositoryVersions, { isLasting: mayRemember }),
      counts,
      texts,
    });
  const pools = await poolsIn(world);
  let [valid, shown] = [0, 0];
  for (let seed = 0; seed < SEEDS; seed++) {
    const generated = generateQuery(schema, seed, pools, 6);
    const answers = await answersOf(schema, generated, newContext);
    if (!answers) continue;
    valid += 1;
    if (answers.theirs.data.length > 200) shown += 1;
    for (const ours of answers.ours) expect(withoutRaces(ours), generated.query).toEqual(withoutRaces(answers.theirs));
  }
  expect(valid).toBeGreaterThan(SEEDS * 0.4);
  expect(shown).toBeGreaterThan(SEEDS * 0.1);
});

test("the schema itself is answered the same by both", async () => {
  const schema = apiSchema();
  for (const query of [
    getIntrospectionQuery(),
    `{ __type(name: "Issue") { name fields(includeDeprecated: true) { name args { name defaultValue } } } no: __type(name: "No") { name } __typename }`,
    `{ __schema { ...S } node(id: "x") { id } } fragment S on __Schema { queryType { name kind } types { possibleTypes { name } enumValues { name } } }`,
  ]) {
    const answers = await answersOf(schema, { query, variables: {} }, () => ({ ctx: world.ctx }));
    for (const ours of answers?.ours ?? []) expect(ours).toEqual(answers?.theirs);
    expect(answers?.theirs.data.length).toBeGreaterThan(100);
  }
});

import { buildSchema, getOperationAST, getVariableValues, parse } from "graphql";
import { expect, test } from "vitest";
import { executePlan } from "../../src/api/graphql/run/execution.ts";
import { Plans } from "../../src/api/graphql/run/plans.ts";
import { MissingValues } from "../../src/api/graphql/run/result.ts";
import { openLog } from "../../src/operations/log.ts";
import { Pace } from "../../src/work/pace.ts";
import { testConfig } from "../support/config.ts";

/** The test opens none of these. */
const PLACES = {
  database: "postgres://127.0.0.1/none",
  redis: { url: "redis://127.0.0.1", prefix: "{none}" },
  upstream: "http://127.0.0.1",
};

const schema = buildSchema("type Label { id: ID! name: String! colour: String } type Query { labels: [Label] }");

/** The errors of a query for labels that have only these fields. */
async function errorsOf(labels: Record<string, string>[], fields: string) {
  const document = parse(`{ labels { ${fields} } }`);
  const operation = getOperationAST(document);
  const { variableValues: variables } = getVariableValues(schema, [], {});
  const plan = operation && variables && new Plans(schema).of(document.definitions, operation, variables);
  if (!plan) throw new Error("The query is none");
  const root = { labels };
  const signal = new AbortController().signal;
  return (await executePlan({ plan, variables, context: null, root, signal, pace: new Pace() })).errors;
}

test("a field that must have a value and has none is logged, once a minute for each field", async () => {
  let now = Date.parse("2026-01-01T00:00:00Z");
  const lines: string[] = [];
  const log = openLog(
    testConfig(PLACES, { LOG_LEVEL: "info" }),
    { name: "web" },
    { write: (line) => lines.push(line) },
  );
  const missing = new MissingValues({ log, clock: { now: () => new Date(now) } });
  const told = () =>
    lines
      .splice(0)
      .map((line) => JSON.parse(line))
      .map(({ field, path }) => `${field} ${path}`);

  missing.note(await errorsOf([{ id: "L_1", name: "bug" }], "id name colour"), "R1");
  expect(told()).toEqual([]);
  missing.note(await errorsOf([{ id: "L_1", name: "bug" }, { name: "a" }, { name: "b" }], "id name"), "R2");
  expect(told()).toEqual(["Label.id labels.1.id"]);
  missing.note(await errorsOf([{ id: "L_1" }, { name: "a" }], "id name"), "R3");
  expect(told()).toEqual(["Label.name labels.0.name"]);
  now += 60_000;
  missing.note(await errorsOf([{}, {}], "id"), "R4");
  expect(told()).toEqual(["Label.id labels.0.id"]);
});

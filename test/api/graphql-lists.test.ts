import { buildSchema, getOperationAST, getVariableValues, parse } from "graphql";
import { expect, test } from "vitest";
import { executePlan } from "../../src/api/graphql/run/execution.ts";
import { Plans } from "../../src/api/graphql/run/plans.ts";
import { Pace } from "../../src/work/pace.ts";

const schema = buildSchema("type Node { id: ID! } type Query { nodes: [Node] }");
const document = parse("{ nodes { id } }");

test("of a list whose turn has not come yet, what fails meanwhile is told like the rest", async () => {
  const operation = getOperationAST(document);
  const { variableValues: variables } = getVariableValues(schema, [], {});
  const plan = operation && variables && new Plans(schema).of(document.definitions, operation, variables);
  if (!plan) throw new Error("The query is none");
  // Each item but the first waits for a turn of the event loop. A rejection that nobody waits for would end the
  // process.
  const pace = new Pace(0);
  const nodes = () => Array.from({ length: 20 }, (_, at) => Promise.reject(new Error(`No node ${at}`)));
  const unheard: unknown[] = [];
  const hear = (error: unknown) => unheard.push(error);
  process.on("unhandledRejection", hear);
  try {
    const signal = new AbortController().signal;
    const { data, errors } = await executePlan({ plan, variables, context: null, root: { nodes }, signal, pace });
    expect(data).toBe(`{"nodes":[${Array.from({ length: 20 }, () => "null").join(",")}]}`);
    expect(errors.map(({ message }) => message)).toEqual(Array.from({ length: 20 }, (_, at) => `No node ${at}`));
  } finally {
    process.off("unhandledRejection", hear);
  }
  expect(unheard).toEqual([]);
});

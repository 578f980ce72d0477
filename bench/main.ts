import { parseArgs } from "node:util";
import * as apply from "./apply.ts";

/** One benchmark: a figure of ours against a named reference, measured in the same run. */
export interface Benchmark {
  name: string;
  /** What is measured, against what, and which ratio is wanted. */
  goal: string;
  /** Answers what is printed: numbers and words, flat enough to be read as one line of JSON. */
  run(): Promise<Record<string, unknown>>;
}

const benchmarks: readonly Benchmark[] = [apply];

const { values } = parseArgs({ options: { only: { type: "string" }, json: { type: "boolean", default: false } } });
const chosen = benchmarks.filter(({ name }) => values.only === undefined || name === values.only);
if (chosen.length === 0) {
  console.error(`There is no benchmark ${values.only}: ${benchmarks.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
for (const { name, goal, run } of chosen) {
  if (!values.json) console.log(`${name}: ${goal}`);
  const measured = await run();
  if (values.json) console.log(JSON.stringify({ name, goal, ...measured }));
  else for (const [key, value] of Object.entries(measured)) console.log(`  ${key}: ${JSON.stringify(value)}`);
}

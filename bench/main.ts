import { existsSync } from "node:fs";
import { parseArgs, styleText } from "node:util";
import { type Benchmark, type Goal, type Measured, shared } from "./measure.ts";
import { profileSelf } from "./profile.ts";

/** Each is a file of this folder. */
const names = [
  "receive",
  "receive-p99",
  "apply",
  "fresh",
  "backfill",
  "copy",
  "list",
  "list-hot",
  "not-modified",
  "one",
  "graphql",
  "graphql-peer",
  "naive",
  "growth",
  "deep",
  "workers",
  "memory",
  "idle",
  "disk",
].filter((name) => existsSync(new URL(`${name}.ts`, import.meta.url)));

const usage = `npm run bench -- [--only NAME[,NAME…]] [--json] [--cpu-prof FOLDER] [--heap-prof FOLDER]

  ${names.join(" ")}

--cpu-prof, --heap-prof  each process of the benchmark leaves a profile there, for Chrome's or any other viewer
ROUNDS=5                 how often subject and reference take turns
TAIN_LARGE=1             the sizes that the goals are stated for, where the usual run is smaller
`;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    "cpu-prof": { type: "string" },
    "heap-prof": { type: "string" },
  },
});
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const asked = (values.only ?? []).flatMap((one) => one.split(","));
const unknown = asked.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no benchmark ${unknown.join(", ")}: ${names.join(", ")}\n`);
  process.exit(2);
}
if (values["cpu-prof"] !== undefined) process.env.BENCH_CPU_PROF = values["cpu-prof"];
if (values["heap-prof"] !== undefined) process.env.BENCH_HEAP_PROF = values["heap-prof"];

for (const name of names.filter((one) => asked.length === 0 || asked.includes(one))) {
  const { benchmark } = (await import(`./${name}.ts`)) as { benchmark: Benchmark };
  if (!values.json) console.log(`${styleText("bold", name)}: ${benchmark.about}`);
  const stopProfile = await profileSelf(name);
  for (const { part, ...measured } of [await benchmark.run()].flat()) {
    const whole = part === undefined ? name : `${name}/${part}`;
    console.log(values.json ? JSON.stringify(line(whole, measured)) : readable(whole, measured));
  }
  await stopProfile();
}
await shared.disposeAsync();

function line(name: string, { notes, goal, met, ...figures }: Omit<Measured, "part">) {
  return { name, ...figures, goal: wanted(goal), met, ...notes };
}

function readable(
  name: string,
  { unit, subject, reference, ratio, spread, goal, met, notes }: Omit<Measured, "part">,
): string {
  const verdict = met ? styleText("green", "met") : styleText("red", "not met");
  const figures = `${subject} ${unit} against ${reference}: ${ratio} (${spread.join("–")}), goal ${wanted(goal)} ${verdict}`;
  const more = Object.entries(notes ?? {}).map(([key, value]) => `\n    ${key}: ${JSON.stringify(value)}`);
  return `  ${name}  ${figures}${more.join("")}`;
}

function wanted(goal: Goal): string {
  return "atLeast" in goal ? `≥ ${goal.atLeast.toFixed(2)}` : `≤ ${goal.atMost.toFixed(2)}`;
}

import { resolve } from "node:path";
import { parseArgs, styleText } from "node:util";
import { compareCheckouts } from "./before-after.ts";
import { compareExchanges } from "./exchanges.ts";
import { type Benchmark, type Goal, type Measured, shared, type Trial } from "./measure.ts";
import { names } from "./names.ts";
import { profileSelf } from "./profile.ts";
import { compareWalks } from "./walks.ts";

/** Run only when they are asked for: they take their time, and have no reference. */
const TRIALS = ["mixed", "start", "instead"];

const USAGE = `npm run bench -- [--only NAME[,NAME…]] [--json] [--before FOLDER] [--cpu-prof FOLDER] [--heap-prof FOLDER]

  ${names.join(" ")}
  ${TRIALS.join(" ")}  (only when they are named)

--before FOLDER          compares this checkout's web process with that of another checkout instead;
                         with --only exchanges what they answer, not how fast,
                         with --only walks how many files a request enters
--cpu-prof, --heap-prof  each process of the benchmark leaves a profile there, for Chrome's or any other viewer
ROUNDS=5                 how often subject and reference take turns
TAIN_LARGE=1             the sizes that the goals are stated for, where the usual run is smaller
SECONDS=60               how long \`mixed\` goes on; docs/performance.md has its other settings
`;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
    before: { type: "string" },
    help: { type: "boolean", default: false },
    "cpu-prof": { type: "string" },
    "heap-prof": { type: "string" },
  },
});
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
if (values["cpu-prof"] !== undefined) process.env.BENCH_CPU_PROF = values["cpu-prof"];
if (values["heap-prof"] !== undefined) process.env.BENCH_HEAP_PROF = values["heap-prof"];
const asked = (values.only ?? []).flatMap((one) => one.split(","));
if (values.before !== undefined) {
  const [before, after] = [resolve(values.before), resolve(import.meta.dirname, "..")];
  if (asked.includes("exchanges")) await compareExchanges(before, after);
  else if (asked.includes("walks")) await compareWalks(before, after);
  else await compareCheckouts(before, asked);
  await shared.disposeAsync();
  process.exit();
}
const known = [...names, ...TRIALS];
const unknown = asked.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no benchmark ${unknown.join(", ")}: ${known.join(", ")}\n`);
  process.exit(2);
}

for (const name of asked.length === 0 ? names : known.filter((one) => asked.includes(one))) {
  const { benchmark, trial } = (await import(`./${name}.ts`)) as { benchmark: Benchmark; trial?: Trial };
  if (!values.json) console.log(`${styleText("bold", name)}: ${(trial ?? benchmark).about}`);
  const stopProfile = await profileSelf(name);
  if (trial) {
    const { figures, problems } = await trial.run();
    console.log(JSON.stringify({ name, ...figures, problems }, null, values.json ? 0 : 2));
    if (problems.length > 0) process.exitCode = 1;
  } else {
    for (const { part, ...measured } of [await benchmark.run()].flat()) {
      const whole = part === undefined ? name : `${name}/${part}`;
      console.log(values.json ? JSON.stringify(line(whole, measured)) : readable(whole, measured));
    }
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

/** `npm run plants`: puts small bugs into a copy of the sources, one at a time, and says which test finds each. */

import { fileURLToPath } from "node:url";
import { parseArgs, styleText } from "node:util";
import { openCopy } from "./copy.ts";
import { type Failure, findFailure } from "./finding.ts";
import { plants } from "./plants.ts";

const USAGE = `Usage: npm run plants [NAME…] [-- options]
  --list   what there is to plant
  --own    look for each bug by its own tests alone, and not by all others when these do not find it
  --json   one line of JSON for each plant, and nothing else`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: "boolean" },
    own: { type: "boolean" },
    json: { type: "boolean", default: false },
    help: { type: "boolean" },
  },
});
const chosen = plants.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const unknown = positionals.filter((name) => !plants.some((plant) => plant.name === name));

// Node warns that its parser of types is experimental. This program parses each planted file with it.
process.removeAllListeners("warning");
if (values.help) console.log(USAGE);
else if (unknown.length > 0) {
  console.error(`There is no plant ${unknown.join(", ")}: npm run plants -- --list\n\n${USAGE}`);
  process.exitCode = 2;
} else if (values.list) {
  for (const { name, property, does } of plants) console.log(`${styleText("bold", name)}  (${property}) ${does}`);
} else process.exitCode = await run();

/** Answers the exit status: 0 when a test found every plant. */
async function run(): Promise<number> {
  using copy = openCopy(fileURLToPath(new URL("../../", import.meta.url)));
  process.once("SIGINT", () => process.exit(1)).once("SIGTERM", () => process.exit(1));
  process.once("exit", () => copy[Symbol.dispose]());
  // Before the first test runs, every plant is tried, so that a missing text is found early.
  for (const plant of chosen) copy.plant(plant)[Symbol.dispose]();
  // A test that fails without any plant would seem to find every bug.
  const files = [...new Set(chosen.flatMap(({ tests }) => tests))];
  tell(`Nothing planted: ${files.length} test files`);
  const before = await findTwice(copy.root, files);
  if (before !== null) {
    console.error(`Without any plant this fails: ${before.test}\n  ${before.message}`);
    return 1;
  }
  let survived = 0;
  for (const plant of chosen) {
    const startedAt = performance.now();
    using _bug = copy.plant(plant);
    const expected = await findTwice(copy.root, plant.tests);
    const foundBy = expected ?? (values.own ? null : await findTwice(copy.root, []));
    if (foundBy === null) survived += 1;
    const { name, property, does } = plant;
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    if (values.json) {
      console.log(
        JSON.stringify({
          name,
          property,
          does,
          foundBy: foundBy?.test ?? null,
          isExpected: expected !== null,
          seconds,
        }),
      );
      continue;
    }
    const elsewhere = expected === null ? " (not one of its own tests)" : "";
    const verdict = foundBy
      ? `found by ${foundBy.test}${elsewhere}\n  ${foundBy.message}`
      : styleText("red", "NOTHING FOUND IT");
    console.log(`${styleText("bold", name)} (${property}) ${does}\n  ${verdict}, ${seconds} s`);
  }
  tell(`${chosen.length - survived} of ${chosen.length} plants were found`);
  return survived > 0 ? 1 : 0;
}

/** Finds a test that fails, and fails once more when it runs alone. A test that fails by chance does not count. */
async function findTwice(root: string, files: readonly string[]): Promise<Failure | null> {
  const byChance: string[] = [];
  for (;;) {
    const found = await findFailure(root, files, byChance);
    if (found === null || (await findFailure(root, [found.file])) !== null) return found;
    byChance.push(found.file);
  }
}

function tell(line: string): void {
  if (!values.json) console.log(line);
}

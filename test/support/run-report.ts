import { writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import type { Reporter, TestCase, TestModule } from "vitest/node";
import { printFigures } from "./figures.ts";

/** The numbers that `.ci/run` prints. */
interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Reports at the end of a run which tests were skipped, and which passed only on a second try. A test of the second
 * kind has met a race, so the run fails. `countsFile` gets the counts as JSON.
 */
export class RunReport implements Reporter {
  readonly #countsFile: string | undefined;

  constructor(countsFile?: string) {
    this.#countsFile = countsFile;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const skipped = tests.filter((test) => test.result().state === "skipped");
    const flaky = tests.filter((test) => test.diagnostic()?.flaky === true);
    const failed = tests.filter((test) => test.result().state === "failed");
    // A file that cannot be loaded has no tests to count, but is a failure all the same.
    const unloaded = modules.filter(
      (module) => module.state() === "failed" && ![...module.children.allTests("failed")].length,
    );
    for (const name of new Set(skipped.map(nameOf))) process.stdout.write(`Skipped: ${name}\n`);
    for (const test of flaky) {
      process.stdout.write(`Flaky, which is a failure: ${nameOf(test)} passed only when it was run again\n`);
      // Only this prints the first try's errors. Vitest takes the test for passed.
      for (const { stack, message, diff } of test.result().errors ?? [])
        process.stdout.write(`${stack ?? message}\n${diff === undefined ? "" : `${stripVTControlCharacters(diff)}\n`}`);
      process.exitCode = 1;
    }
    const counts: Counts = {
      passed: tests.filter((test) => test.result().state === "passed").length - flaky.length,
      failed: failed.length + flaky.length + unloaded.length,
      skipped: skipped.length,
    };
    if (this.#countsFile) writeFileSync(this.#countsFile, JSON.stringify(counts));
    if (process.env.TAIN_COUNTS) printFigures("tests", { ...counts });
  }
}

function nameOf({ module, fullName }: TestCase): string {
  return `${module.relativeModuleId} > ${fullName}`;
}

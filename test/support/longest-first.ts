import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The slowest test files, in this order. Files that begin late must be short, because at the end there are fewer files
 * than processes to run them. Vitest alone knows the times only from an earlier run in the same checkout.
 */
export const LONGEST = [
  "simulation/seeds",
  "scenario/start-demonstration",
  "launcher/start",
  "scenario/floor",
  "scenario/isolation",
  "scenario/fleet",
  "matrix/forwarded",
  "corpus/corpus",
  "scenario/start-upstream",
  "scenario/live",
  "scenario/missing-parts",
  "scenario/lifecycle",
  "scenario/stores",
  "workers/processes",
  "matrix/matrix",
  "scenario/removal",
  "events/killed-worker",
  "scenario/delivery-cost",
  "scenario/pull-pages",
  "scenario/memory",
  "scenario/kill-tree",
  "scenario/kill-worker",
  "cli/instance",
  "cli/hooks",
  "cli/first-steps",
  "cli/schema-guard",
  "workers/schema-guard",
  "conformance/webhook-examples",
  "scenario/mergeability",
  "scenario/gone-accounts",
  "scenario/spent-quota",
].map((name) => `test/${name}.test.ts`);

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files);
    const longest = LONGEST.flatMap((name) => others.filter(({ moduleId }) => moduleId.endsWith(`/${name}`)));
    return [...new Set([...longest, ...others])];
  }
}

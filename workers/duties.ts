import type { Logger } from "../src/operations/log.ts";
import { classifyFailure } from "../src/sync/problems/causes.ts";

/**
 * Waits for all duties of a task, even if some fail, so that none runs on after its job has ended.
 * @throws one failure: if there is one, a failure that is not an outage of Postgres. The others are logged.
 */
export async function allOf(
  log: Pick<Logger, "error">,
  task: string,
  duties: readonly Promise<unknown>[],
): Promise<void> {
  const outcomes = await Promise.allSettled(duties);
  const failures: unknown[] = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length === 0) return;
  const thrown = failures.find((error) => !isPostgresAway(error)) ?? failures[0];
  for (const err of failures)
    if (err !== thrown && !isPostgresAway(err)) log.error({ task, err }, "A part of a task failed as well");
  throw thrown;
}

function isPostgresAway(error: unknown): boolean {
  const failure = classifyFailure(error);
  return failure.kind === "away" && failure.what === "postgres";
}

import { type Fields, type Json, numberOf, objectOf } from "../../json.ts";
import { exists, isCompleted, resource, resourceEvents, sets } from "../contract/kind.ts";
import { checkRuns } from "./table.ts";

/** The keys of a suite that a check run's payload leaves out. */
const NOT_IN_RUNS: ReadonlySet<string> = new Set([
  "repository",
  "head_commit",
  "check_runs_url",
  "rerequestable",
  "runs_rerequestable",
  "latest_check_runs_count",
]);

export const checkRun = resource("check_run", checkRuns, {
  right: "checks",
  part: "checks",
  columns: ({ check_suite, app }) => ({ check_suite_id: idOf(check_suite), app_id: idOf(app) }),
  needed: ["head_sha", "name", "status"],
  upstream: { path: (id) => `/check-runs/${id}` },
  isVersioned: false,
  progressOf,
  events: resourceEvents({
    event: "check_run",
    in: "check_run",
    fields: { status: isCompleted },
    actions: { created: exists(true), completed: sets("status", true) },
    madeAt: ({ started_at }) => started_at,
    sinceBirth: ({ status }) => (status === "completed" ? [["status", false]] : []),
    toldSinceBirth: "each",
    embedded: {
      kind: "check_suite",
      key: "check_suite",
      id: ({ check_suite }) => idOf(check_suite),
      shown: (suite) => Object.fromEntries(Object.entries(suite).filter(([key]) => !NOT_IN_RUNS.has(key))),
    },
  }),
});

export function idOf(value: Json | undefined): number | null {
  return numberOf(objectOf(value).id);
}

/**
 * The steps of a check run. It never goes back: a rerun is a run of its own. Others (waiting, requested) come before
 * the last two.
 */
const RUN_STEPS: readonly string[] = ["in_progress", "completed"];
/** More than any time in milliseconds, so that a later step always outweighs a later time. */
const STEP = 1e14;

/** An App may report that a run ended before it began, so times are compared only within a step. Pure. */
export function progressOf({ status, started_at, completed_at }: Fields): number {
  const step = RUN_STEPS.indexOf(String(status)) + 1;
  const since = Date.parse(String(step === RUN_STEPS.length ? completed_at : started_at));
  return step * STEP + (Number.isNaN(since) ? 0 : since);
}

/** Check runs and check suites. Only Apps write them. */
import {
  createCheckRun,
  createSuite,
  editCheckRun,
  latestRuns,
  type RunEdit,
  rerequestRun,
  rerequestSuite,
} from "../changes/checks.ts";
import { annotationView, runView, suiteView } from "../views/check.ts";
import { commitOf } from "../world/commits.ts";
import { isJsonObject } from "../world/json.ts";
import {
  type Annotation,
  CHECK_CONCLUSIONS,
  CHECK_STATUSES,
  type CheckApp,
  type CheckRun,
  type CheckSuite,
} from "../world/records-code.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { numberOf, oneOf, required, text, textOrNull, timeOf } from "./body.ts";
import { type Answer, contributor, created, notFound, ok, type RepositoryCall } from "./call.ts";
import { commitNamed, noCommit } from "./commits.ts";
import { counted, paged } from "./pagination.ts";

const SUITES_READ = 1_000;
const ANNOTATIONS_AT_ONCE = 50;
const MAX_OUTPUT = 65_535;

export function listRunsOfRef(call: RepositoryCall): Answer {
  const { query } = call;
  const appId = query.get("app_id");
  const suites = suitesAt(call, commitNamed(call, call.params.ref ?? "").sha)
    .slice(-SUITES_READ)
    .filter((suite) => appId === null || suite.app.id === Number(appId));
  return runs(call, suites);
}

export function listRunsOfSuite(call: RepositoryCall): Answer {
  return runs(call, [findSuite(call)]);
}

function runs(call: RepositoryCall, suites: readonly CheckSuite[]): Answer {
  const { query, world } = call;
  const filter = query.get("filter") ?? "latest";
  if (filter !== "latest" && filter !== "all")
    throw invalid({ resource: "CheckRun", field: "filter", code: "invalid", value: filter });
  const name = query.get("check_name");
  const status = query.get("status");
  const found = suites
    .flatMap((suite) => (filter === "latest" ? latestRuns(suite) : suite.runs))
    .flatMap((run) => world.lag.seen(run) ?? [])
    .filter((run) => (name === null || run.name === name) && (status === null || run.status === status))
    .sort((a, b) => b.id - a.id);
  return counted(call, "check_runs", found, (run) => runView(call.view, run));
}

export function listSuites(call: RepositoryCall): Answer {
  const { query } = call;
  const appId = query.get("app_id");
  const name = query.get("check_name");
  const found = suitesAt(call, commitNamed(call, call.params.ref ?? "").sha).filter(
    (suite) =>
      (appId === null || suite.app.id === Number(appId)) &&
      (name === null || suite.runs.some((run) => run.name === name)),
  );
  return counted(call, "check_suites", found, (suite) => suiteView(call.view, suite));
}

function suitesAt({ world, repository }: RepositoryCall, sha: string): readonly CheckSuite[] {
  return (world.code.of(repository).suites.get(sha) ?? []).flatMap((suite) => world.lag.seen(suite) ?? []);
}

function findSuite({ world, repository, params }: RepositoryCall): CheckSuite {
  const suite = world.code.checkSuites.get(Number(params.id));
  const seen = suite?.repository === repository ? world.lag.seen(suite) : null;
  if (!seen) throw notFound();
  return seen;
}

function findRun({ world, repository, params }: RepositoryCall): CheckRun {
  const run = world.code.checkRuns.get(Number(params.id));
  const seen = run?.suite.repository === repository ? world.lag.seen(run) : null;
  if (!seen) throw notFound();
  return seen;
}

export function getRun(call: RepositoryCall): Answer {
  return ok(runView(call.view, findRun(call)));
}

export function getSuite(call: RepositoryCall): Answer {
  return ok(suiteView(call.view, findSuite(call)));
}

export function listAnnotations(call: RepositoryCall): Answer {
  const run = findRun(call);
  const rows = run.annotations;
  return paged(call, { rows, size: rows.length }, (note) => annotationView(call.view, run, note));
}

/** The App whose installation calls. */
function callingApp(call: RepositoryCall): { readonly by: number; readonly app: CheckApp } {
  const by = contributor(call);
  const app = call.token?.grant?.installation.app;
  if (!app) throw new Refusal(403, "You must authenticate via a GitHub App.");
  return { by, app };
}

export function postRun(call: RepositoryCall): Answer {
  const { by, app } = callingApp(call);
  const { body, repository, world } = call;
  const name = required(text(body, "name"), "name");
  const headSha = required(text(body, "head_sha"), "head_sha");
  if (!commitOf(world, repository, headSha)) throw noCommit(headSha);
  const run = createCheckRun(world, by, { ...editOf(call), repository, app, headSha, name });
  return created(runView(call.view, run));
}

export function patchRun(call: RepositoryCall): Answer {
  const { by, app } = callingApp(call);
  const run = call.world.code.checkRuns.get(findRun(call).id);
  if (!run) throw notFound();
  if (run.suite.app.id !== app.id) {
    const message = `Invalid app_id \`${app.id}\` - check run can only be modified by the GitHub App that created it.`;
    throw new Refusal(403, message);
  }
  editCheckRun(call.world, by, run, editOf(call));
  return ok(runView(call.view, run));
}

function editOf(call: RepositoryCall): RunEdit {
  const { body } = call;
  const edit: { -readonly [Name in keyof RunEdit]: RunEdit[Name] } = {};
  const name = text(body, "name");
  const status = oneOf(body, "status", CHECK_STATUSES);
  const conclusion = oneOf(body, "conclusion", CHECK_CONCLUSIONS);
  const startedAt = timeOf(body, "started_at");
  const completedAt = timeOf(body, "completed_at");
  const detailsUrl = textOrNull(body, "details_url");
  const externalId = text(body, "external_id");
  if (conclusion === "stale") throw invalid({ resource: "CheckRun", field: "conclusion", code: "invalid" });
  if (name !== undefined) edit.name = name;
  if (status !== undefined) edit.status = status;
  if (conclusion !== undefined) edit.conclusion = conclusion;
  if (startedAt !== undefined) edit.startedAt = startedAt;
  if (completedAt !== undefined) edit.completedAt = completedAt;
  if (detailsUrl !== undefined) edit.detailsUrl = detailsUrl;
  if (externalId !== undefined) edit.externalId = externalId;
  const { output } = body;
  if (output === undefined) return edit;
  if (!isJsonObject(output))
    throw new Refusal(422, "Invalid request.\n\nFor 'properties/output', this is not an object.");
  const summary = required(text(output, "summary"), "summary");
  const title = call.method === "POST" ? required(text(output, "title"), "title") : text(output, "title");
  const words = textOrNull(output, "text");
  for (const [field, value] of Object.entries({ summary, text: words })) {
    if ((value?.length ?? 0) > MAX_OUTPUT)
      throw invalid({
        resource: "CheckRun",
        field,
        code: "custom",
        message: `${field} exceeds a maximum bytesize of 65535`,
      });
  }
  edit.output = { title: title ?? null, summary, text: words ?? null };
  edit.annotations = annotationsOf(output.annotations);
  return edit;
}

function annotationsOf(given: unknown): readonly Annotation[] {
  if (given === undefined) return [];
  if (!Array.isArray(given))
    throw new Refusal(422, "Invalid request.\n\nFor 'properties/annotations', this is not an array.");
  if (given.length > ANNOTATIONS_AT_ONCE)
    throw new Refusal(
      422,
      `Invalid request.\n\nNo more than ${ANNOTATIONS_AT_ONCE} items are allowed; ${given.length} were supplied.`,
    );
  return given.map((one: Readonly<Record<string, unknown>>) => ({
    path: required(text(one, "path"), "path"),
    startLine: required(numberOf(one, "start_line"), "start_line"),
    endLine: required(numberOf(one, "end_line"), "end_line"),
    startColumn: numberOf(one, "start_column") ?? null,
    endColumn: numberOf(one, "end_column") ?? null,
    level: required(oneOf(one, "annotation_level", ["notice", "warning", "failure"] as const), "annotation_level"),
    title: text(one, "title") ?? null,
    message: required(text(one, "message"), "message"),
    rawDetails: text(one, "raw_details") ?? null,
  }));
}

/** 201 for a new one; 200 if the App has one of the commit. */
export function postSuite(call: RepositoryCall): Answer {
  const { app } = callingApp(call);
  const { world, repository } = call;
  const sha = required(text(call.body, "head_sha"), "head_sha");
  if (!commitOf(world, repository, sha)) throw noCommit(sha);
  const there = world.code
    .of(repository)
    .suites.get(sha)
    ?.findLast((one) => one.app.id === app.id);
  if (there) return ok(suiteView(call.view, there));
  return created(suiteView(call.view, createSuite(world, repository, app, sha)));
}

export function postRunAgain(call: RepositoryCall): Answer {
  const by = contributor(call);
  const run = call.world.code.checkRuns.get(findRun(call).id);
  if (!run) throw notFound();
  rerequestRun(call.world, by, run);
  return { status: 201, body: {} };
}

export function postSuiteAgain(call: RepositoryCall): Answer {
  const by = contributor(call);
  const suite = call.world.code.checkSuites.get(findSuite(call).id);
  if (!suite) throw notFound();
  rerequestSuite(call.world, by, suite);
  return { status: 201, body: {} };
}

import { type Fields, parseStored } from "../../json.ts";
import { findJob, findWorkflow, jobsAmong, runsAmong, type WorkflowRunFilter } from "../../mirror/read/actions.ts";
import { findResourcePage, findWithListBelow, type ResourcePlace } from "../../mirror/read/resources.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { InvalidSearchError } from "../../mirror/search/query.ts";
import { timeRange } from "../../mirror/search/range.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { notFound, notHeld, unread } from "../dialect/fault.ts";
import { choice } from "../dialect/protocol.ts";
import { boundedPage, countedPage, numberParam, pageDb } from "./page.ts";
import { requireHeldList, requireResource } from "./resources.ts";

export async function listWorkflows(call: RepositoryCall): Promise<Answer> {
  await requireHeldList(call, "workflow");
  const { rows, total } = await findResourcePage(pageDb(call), "workflow", call.repository.id, {
    ...boundedPage(call, "workflows"),
    order: "firstMade",
  });
  return await countedPage(call, "workflows", rows, total);
}

export async function getWorkflow(call: RepositoryCall): Promise<Answer> {
  await requireHeldList(call, "workflow");
  const found = await namedWorkflow(call);
  if (!found) throw notFound();
  return ok(await showOne(call, found));
}

export async function listWorkflowRuns(call: RepositoryCall): Promise<Answer> {
  await requireHeldList(call, "workflow_run");
  return await showRuns(call, {});
}

export async function listRunsOfWorkflow(call: RepositoryCall): Promise<Answer> {
  await requireHeldList(call, "workflow");
  await requireHeldList(call, "workflow_run");
  const found = await namedWorkflow(call);
  // Only upstream can say what it shows of a workflow that is gone.
  if (!found) throw notHeld();
  return await showRuns(call, { workflowId: found.id });
}

/** GitHub docs: "This endpoint will return up to 1,000 results for each search when using" any of its filters. */
const MOST_FOUND = 1_000;

async function showRuns(call: RepositoryCall, of: Pick<WorkflowRunFilter, "workflowId">): Promise<Answer> {
  const filter = filterOf(call);
  const isFiltered = Object.keys(filter).length > 0;
  const page = boundedPage(call, isFiltered ? null : `runs of ${of.workflowId ?? "all workflows"}`);
  const found = await findResourcePage(pageDb(call, { isFiltered }), "workflow_run", call.repository.id, {
    among: runsAmong({ ...filter, ...of }),
    order: "newest",
    ...page,
    ...(isFiltered && { most: MOST_FOUND, limit: Math.min(page.limit, Math.max(0, MOST_FOUND - page.offset)) }),
  });
  const { total } = found;
  const rows = found.rows.map((row) => asAsked(call, row));
  return await countedPage(call, "workflow_runs", rows, total);
}

/** @throws NotHeldFault for a time that only upstream may understand */
function filterOf({ query }: RepositoryCall): Omit<WorkflowRunFilter, "workflowId"> {
  const given = (name: string) => query.get(name) || undefined;
  const [actor, branch, event, status] = [given("actor"), given("branch"), given("event"), given("status")];
  const [created, headSha, suite] = [given("created"), given("head_sha"), given("check_suite_id")];
  return {
    ...(actor !== undefined && { actor }),
    ...(branch !== undefined && { branch }),
    ...(event !== undefined && { event }),
    ...(status !== undefined && { status }),
    ...(created !== undefined && { created: timesOf(created) }),
    ...(headSha !== undefined && { headSha }),
    // A number that names no suite finds nothing.
    ...(suite !== undefined && { checkSuiteId: numberParam(suite) ?? 0 }),
  };
}

function timesOf(text: string): ReturnType<typeof timeRange> {
  try {
    return timeRange(text);
  } catch (error) {
    if (error instanceof InvalidSearchError) throw notHeld();
    throw error;
  }
}

/** The run, without its pull requests if the caller does not want them. */
function asAsked({ query }: RepositoryCall, run: StoredDocument): StoredDocument {
  if (query.get("exclude_pull_requests") !== "true") return run;
  const fields = parseStored<Fields>(run.document);
  return { ...run, document: JSON.stringify({ ...fields, pull_requests: [] }) };
}

export async function getWorkflowRun(call: RepositoryCall): Promise<Answer> {
  return ok(await showOne(call, asAsked(call, (await requireResource(call, "workflow_run")).found)));
}

export async function listJobs(call: RepositoryCall): Promise<Answer> {
  const { place } = await requireResource(call, "workflow_run");
  await requireJobs(call, place);
  const { rows, total } = await findResourcePage(pageDb(call), "workflow_job", place.repositoryId, {
    ...boundedPage(call, null),
    among: jobsAmong(place.id, choice(call.query, "filter", ["latest", "all"])),
    order: "firstMade",
  });
  return await countedPage(call, "jobs", rows, total);
}

export async function getJob(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const id = numberParam(params.id);
  const found = id === null ? null : await findJob(ctx.db, repository.id, id);
  // Jobs of runs that nobody has asked for are not here.
  if (!found) throw notHeld();
  // One that has ended changes no more.
  if (!found.isCompleted) await requireJobs(call, { repositoryId: repository.id, id: found.runId });
  return ok(await showOne(call, found));
}

/** @throws UnreadFault if the mirror does not hold the jobs of the run, which are then read */
async function requireJobs({ ctx }: RepositoryCall, run: ResourcePlace): Promise<void> {
  const [isHeld] = await findWithListBelow(ctx.db, "workflow_job", [run]);
  if (!isHeld) throw unread({ kind: "workflow_job", repositoryId: run.repositoryId, parentId: run.id });
}

async function namedWorkflow({ ctx, repository, params }: RepositoryCall): ReturnType<typeof findWorkflow> {
  const { workflow = "" } = params;
  return await findWorkflow(ctx.db, repository.id, numberParam(workflow) ?? workflow);
}

import { expect, test } from "vitest";
import { startWorkflowRun, workflowOf } from "../../src/simulator/changes/actions.ts";
import { deleteRepository } from "../../src/simulator/changes/repositories.ts";
import type { Permissions } from "../../src/simulator/world/permissions.ts";
import { openAccessWorld } from "./access-world.ts";
import { settledHook } from "./hooked.ts";
import { openReceiver, openSimulated, rels } from "./simulated.ts";

const ACTIONS = "/repos/octo/demo/actions";

async function open() {
  const it = await openSimulated({ webhooks: { concurrency: 1 } });
  const mutate = async (op: object) => {
    it.clock.advance(1_000);
    const reply = await it.control("POST", "/-/mutate", { repository: "octo/demo", by: "octo", ...op });
    expect(reply.status, reply.text).toBe(200);
    return reply.body;
  };
  /** Answers the run. */
  const start = (given: object = {}) => mutate({ op: "startWorkflowRun", ...given });
  const jobs = async ({ id }: { id: number }, query = "") => (await it.get(`${ACTIONS}/runs/${id}/jobs${query}`)).body;
  const begin = (job: { id: number }) => mutate({ op: "beginJob", job: job.id });
  const end = (job: { id: number }, conclusion = "success") => mutate({ op: "endJob", job: job.id, conclusion });
  const one = async ({ id }: { id: number }) => (await it.get(`${ACTIONS}/runs/${id}`)).body;
  return { ...it, mutate, start, jobs, begin, end, one };
}

test("a run goes from queued to completed with its jobs, and its time goes along", async () => {
  await using it = await open();
  const run = await it.start({ jobs: "build,test" });
  expect(run).toMatchObject({
    ...{ name: "CI", path: ".github/workflows/ci.yml", event: "push", head_branch: "main", run_number: 1 },
    ...{ run_attempt: 1, status: "queued", conclusion: null, pull_requests: [], previous_attempt_url: null },
    ...{ actor: { login: "octo" }, triggering_actor: { login: "octo" } },
  });
  expect(run.created_at).toBe(run.updated_at);
  expect(Object.keys(run.repository)).not.toContain("permissions");
  const { total_count, jobs } = await it.jobs(run);
  expect([total_count, jobs.map(({ name }: { name: string }) => name)]).toEqual([2, ["build", "test"]]);
  expect(jobs[0]).toMatchObject({ run_id: run.id, status: "queued", steps: [], runner_id: null, workflow_name: "CI" });
  await it.begin(jobs[0]);
  const begun = await it.one(run);
  expect([begun.status, begun.updated_at > run.updated_at]).toEqual(["in_progress", true]);
  const [first] = (await it.jobs(run)).jobs;
  expect(first.steps.map(({ status }: { status: string }) => status)).toEqual([
    ...["in_progress", "queued", "queued", "queued"],
  ]);
  await it.end(jobs[0]);
  expect((await it.one(run)).status).toBe("in_progress");
  await it.end(jobs[1], "failure");
  expect(await it.one(run)).toMatchObject({ status: "completed", conclusion: "failure" });
  const ended = (await it.get(`${ACTIONS}/jobs/${jobs[1].id}`)).body;
  expect(ended).toMatchObject({ status: "completed", conclusion: "failure" });
  expect(ended.steps.map(({ conclusion }: { conclusion: string }) => conclusion)).toEqual([
    ...["success", "success", "failure", "success"],
  ]);
  expect((await it.get(`/repos/octo/demo/check-runs/${jobs[1].id}`)).body).toMatchObject({ conclusion: "failure" });
});

test("runs are listed newest first, in pages, and by each filter", async () => {
  await using it = await open();
  it.simulator.world.addUser({ login: "bob" });
  await it.mutate({ op: "createPull", head: "topic", title: "p", body: "b" });
  const a = await it.start();
  const b = await it.start({ workflow: "Release", event: "workflow_dispatch", by: "bob" });
  const c = await it.start({ number: 1, event: "pull_request" });
  const [job] = (await it.jobs(a)).jobs;
  await it.end(job, "failure");
  const ids = async (query: string, at = "runs") => {
    const { body } = await it.get(`${ACTIONS}/${at}?${query}`);
    expect(body.total_count).toBe(body.workflow_runs.length);
    return body.workflow_runs.map(({ id }: { id: number }) => id);
  };
  expect(await ids("")).toEqual([c.id, b.id, a.id]);
  expect(await ids("actor=bob")).toEqual([b.id]);
  expect(await ids("branch=topic")).toEqual([c.id]);
  expect(await ids("event=pull_request")).toEqual([c.id]);
  expect(await ids("status=completed")).toEqual([a.id]);
  expect(await ids("status=failure")).toEqual([a.id]);
  expect(await ids("status=success")).toEqual([]);
  expect(await ids(`head_sha=${c.head_sha}`)).toEqual([c.id]);
  expect(await ids(`check_suite_id=${b.check_suite_id}`)).toEqual([b.id]);
  expect(await ids(`created=${encodeURIComponent(`>=${b.created_at}`)}`)).toEqual([c.id, b.id]);
  expect(await ids("created=2020-01-01..2020-02-01")).toEqual([]);
  expect(await ids("", `workflows/${b.workflow_id}/runs`)).toEqual([b.id]);
  expect(await ids("", "workflows/ci.yml/runs")).toEqual([c.id, a.id]);
  const page = await it.get(`${ACTIONS}/runs?per_page=1&page=2`);
  expect([page.body.total_count, page.body.workflow_runs[0].id]).toEqual([3, b.id]);
  expect(rels(page)).toEqual(["prev", "next", "last", "first"]);
  const shown = async (query: string) => (await it.get(`${ACTIONS}/runs?${query}`)).body.workflow_runs[0].pull_requests;
  expect([(await shown("")).length, await shown("exclude_pull_requests=true")]).toEqual([1, []]);
});

test("workflows are listed, found by number or file, and disabled ones are not dispatched", async () => {
  await using it = await open();
  const run = await it.start();
  await it.start({ workflow: "Night watch" });
  const { body } = await it.get(`${ACTIONS}/workflows`);
  expect([body.total_count, body.workflows.map(({ path }: { path: string }) => path)]).toEqual([
    2,
    [".github/workflows/ci.yml", ".github/workflows/night-watch.yml"],
  ]);
  const [ci] = body.workflows;
  expect(ci).toMatchObject({ id: run.workflow_id, state: "active" });
  for (const name of [ci.id, "ci.yml"]) expect((await it.get(`${ACTIONS}/workflows/${name}`)).body).toEqual(ci);
  for (const name of ["1", "no.yml", ".github"])
    expect((await it.get(`${ACTIONS}/workflows/${name}`)).status).toBe(404);
  const dispatch = (ref: string) => it.ask("POST", `${ACTIONS}/workflows/ci.yml/dispatches`, { body: { ref } });
  expect((await dispatch("none")).status).toBe(422);
  expect((await dispatch("main")).status).toBe(204);
  expect((await it.get(`${ACTIONS}/runs?event=workflow_dispatch`)).body.total_count).toBe(1);
  expect((await it.ask("PUT", `${ACTIONS}/workflows/${ci.id}/disable`)).status).toBe(204);
  expect((await it.get(`${ACTIONS}/workflows/ci.yml`)).body.state).toBe("disabled_manually");
  expect((await dispatch("main")).status).toBe(403);
  expect((await it.ask("PUT", `${ACTIONS}/workflows/ci.yml/enable`)).status).toBe(204);
  expect((await dispatch("main")).status).toBe(204);
});

test("a run is run again with new jobs, cancelled, and deleted once it has ended", async () => {
  await using it = await open();
  const run = await it.start({ jobs: "build,test" });
  const act = (path: string, method = "POST") => it.ask(method, `${ACTIONS}/runs/${run.id}${path}`);
  expect((await act("/rerun")).status).toBe(403);
  expect((await act("", "DELETE")).status).toBe(403);
  expect((await act("/cancel")).status).toBe(202);
  expect(await it.one(run)).toMatchObject({ status: "completed", conclusion: "cancelled" });
  expect((await act("/cancel")).status).toBe(409);
  expect((await act("/rerun")).status).toBe(201);
  expect(await it.one(run)).toMatchObject({
    ...{ status: "queued", conclusion: null, run_attempt: 2, run_number: 1, created_at: run.created_at },
    previous_attempt_url: `${run.url}/attempts/1`,
  });
  const attempts = async (query: string) =>
    (await it.jobs(run, query)).jobs.map(({ run_attempt }: { run_attempt: number }) => run_attempt);
  expect(await attempts("")).toEqual([2, 2]);
  expect(await attempts("?filter=all")).toEqual([1, 1, 2, 2]);
  for (const job of (await it.jobs(run)).jobs) await it.end(job);
  const [job] = (await it.jobs(run)).jobs;
  expect((await act("", "DELETE")).status).toBe(204);
  for (const path of [`runs/${run.id}`, `runs/${run.id}/jobs`, `jobs/${job.id}`])
    expect((await it.get(`${ACTIONS}/${path}`)).status).toBe(404);
  expect((await it.get(`${ACTIONS}/runs`)).body.total_count).toBe(0);
});

test("webhooks tell of runs and jobs, and nothing of steps, deletions and disabled workflows", async () => {
  await using it = await open();
  await using receiver = await openReceiver();
  const config = { url: receiver.url, content_type: "json" };
  await settledHook(it, config, ["workflow_run", "workflow_job"]);
  receiver.heard.length = 0;
  const run = await it.start();
  const [job] = (await it.jobs(run)).jobs;
  await it.begin(job);
  await it.mutate({ op: "endStep", job: job.id });
  await it.end(job);
  await it.mutate({ op: "disableWorkflow", workflow: run.workflow_id });
  await it.mutate({ op: "deleteWorkflowRun", run: run.id });
  await it.simulator.quiet();
  const told = receiver.heard;
  expect(receiver.names()).toEqual([
    ...["workflow_run.requested", "workflow_job.queued", "workflow_job.in_progress", "workflow_run.in_progress"],
    ...["workflow_job.completed", "workflow_run.completed"],
  ]);
  expect(told[0]?.payload).toMatchObject({ workflow_run: { id: run.id }, workflow: { id: run.workflow_id } });
  expect(told[1]?.payload).toMatchObject({ workflow_job: { id: job.id, run_id: run.id, status: "queued" } });
});

test("Actions take their own permission; writes take push access as well", async () => {
  await using it = await openAccessWorld();
  const { world } = it.simulator;
  const { repository } = it.places["acme/closed"];
  repository.branches.set("main", "a".repeat(40));
  const run = startWorkflowRun(world, it.owner.id, {
    workflow: workflowOf(world, { repository }),
    headSha: "a".repeat(40),
  });
  const at = "/repos/acme/closed/actions";
  const reads = async (token: string) => {
    const paths = ["/runs", `/runs/${run.id}`, `/runs/${run.id}/jobs`, `/jobs/${run.jobs[0]?.id}`, "/workflows"];
    const statuses = await Promise.all(paths.map(async (path) => (await it.get(at + path, { token })).status));
    expect(new Set(statuses).size).toBe(1);
    return statuses[0];
  };
  const fine = (permissions: Permissions) => it.token({ kind: "fine-grained", owner: "acme", permissions });
  const reader = await fine({ actions: "read" });
  const other = await fine({ contents: "write", checks: "write", statuses: "write" });
  expect([await reads(reader), await reads(other)]).toEqual([200, 403]);
  const cancel = async (token: string) => (await it.ask("POST", `${at}/runs/${run.id}/cancel`, { token })).status;
  expect([await cancel(reader), await cancel(await fine({ actions: "write" }))]).toEqual([403, 202]);
  expect(it.simulator.accessOf(reader, repository)).toMatchObject({ actions: "read", contents: "none" });
  const classic = await it.token({ scopes: ["repo"] });
  expect([await reads(classic), await reads(await it.token({ scopes: ["repo_deployment"] }))]).toEqual([200, 404]);
});

test("a replica that is behind shows runs, jobs and deletions late", async () => {
  await using it = await open();
  const old = await it.start();
  it.simulator.setFaults({ lagMs: 10_000 });
  const [job] = (await it.jobs(old)).jobs;
  await it.end(job);
  const fresh = await it.start();
  const shown = async () => (await it.get(`${ACTIONS}/runs`)).body.workflow_runs.map((row: { id: number }) => row.id);
  const state = async () => [(await it.one(old)).status, (await it.get(`${ACTIONS}/jobs/${job.id}`)).body.status];
  expect([await shown(), await state()]).toEqual([[old.id], ["queued", "queued"]]);
  expect((await it.get(`${ACTIONS}/runs/${fresh.id}`)).status).toBe(404);
  it.clock.advance(10_000);
  expect([await shown(), await state()]).toEqual([
    [fresh.id, old.id],
    ["completed", "completed"],
  ]);
  await it.mutate({ op: "deleteWorkflowRun", run: old.id });
  expect(await shown()).toEqual([fresh.id, old.id]);
  it.clock.advance(10_000);
  expect(await shown()).toEqual([fresh.id]);
});

test("a deleted repository takes its workflows, runs and jobs along", async () => {
  await using it = await open();
  await it.start();
  const { world } = it.simulator;
  const { code } = world;
  expect([code.workflows.size, code.workflowRuns.size, code.workflowJobs.size]).toEqual([1, 1, 1]);
  deleteRepository(world, it.owner.id, it.repository);
  expect([code.workflows.size, code.workflowRuns.size, code.workflowJobs.size]).toEqual([0, 0, 0]);
});

/** Workflows, their runs and jobs, from the webhook to the answer. Each answer must equal upstream's. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Permission } from "../../src/api/callers/permissions.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import {
  addWorkflowJob,
  addWorkflowRun,
  beginJob,
  deleteWorkflow,
  deleteWorkflowRun,
  endJob,
  rerun,
  setWorkflowState,
  startWorkflowRun,
  workflowOf,
} from "../../src/simulator/changes/actions.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import type { WorkflowRun } from "../../src/simulator/world/records-actions.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { hasGh, openGh } from "../conformance/gh-runs.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markResourceListsDue } from "../support/due.ts";
import { passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let repository: Repository;
const PUSHER = "ghp_pusher";
const HOUR = 3_600_000;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "actions" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 2 });
      for (const one of filled.repositories.values()) {
        one.visibility = "private";
        addCode(filled, one, { workflowRuns: 9 }, 7, filled.now());
      }
    },
  });
  const { simulator } = world;
  const [owner = "", name = ""] = world.first.split("/");
  const found = simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  const { userId } = simulator.tokens.create({ token: PUSHER, login: "pusher" });
  repository.collaborators.set(userId, "push");
  await world.mirror(world.first);
  await world.listen(world.first);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const pass = (ms: number) => passRound(world, ms, markResourceListsDue);
const tick = () => (world.simulator.world.clock as SettableClock).advance(2_000);
const at = (path: string) => `/repos/${world.first}/actions${path}`;
const get = (path: string, token: string | null = world.token) => askAt(world.url, "GET", at(path), { token });
const upstreams = (path: string) => askAt(world.simulator.url, "GET", at(path), { token: UPSTREAM_TOKEN });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
const all = () => [...world.simulator.world.code.of(repository).workflowRuns.values()];
const by = () => repository.ownerId;

function start(name: string, jobs: string[] = ["build"]): WorkflowRun {
  tick();
  const upstream = world.simulator.world;
  const headSha = repository.branches.get(repository.defaultBranch) ?? "";
  return startWorkflowRun(upstream, by(), { workflow: workflowOf(upstream, { repository, name }), headSha, jobs });
}

function run(one: WorkflowRun, conclusion: "success" | "failure" = "success"): void {
  for (const job of one.jobs.filter(({ attempt }) => attempt === one.attempt)) {
    tick();
    beginJob(world.simulator.world, by(), job);
    tick();
    endJob(world.simulator.world, by(), job, conclusion);
  }
}

/** Expects the mirror to answer from its own rows, as upstream does. */
async function expectHeld(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const [ours, theirs] = [await get(path), await upstreams(path)];
    expect([path, isPassed(ours), ours.status]).toEqual([path, false, theirs.status]);
    if (theirs.status !== 200) continue;
    expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
    const links = (one: Headers) => one.get("link")?.replaceAll(`${world.simulator.url}/`, `${world.url}/`);
    expect([path, links(ours.headers)]).toEqual([path, links(theirs.headers)]);
  }
}

const everyList = () => {
  const [one] = all();
  return [
    "/workflows",
    "/workflows?per_page=1&page=2",
    "/workflows/ci.yml",
    "/workflows/ci.yml/runs?per_page=2",
    `/workflows/${one?.workflow.id}`,
    `/workflows/${one?.workflow.id}/runs`,
    "/runs",
    "/runs?per_page=3&page=2",
    "/runs?status=success&per_page=2",
    "/runs?status=completed&event=push",
    `/runs?branch=${repository.defaultBranch}&exclude_pull_requests=true`,
    "/runs?branch=none",
    `/runs?head_sha=${one?.suite.headSha}&per_page=1`,
    `/runs?check_suite_id=${one?.suite.id}`,
    `/runs?actor=${world.first.split("/")[0]?.toUpperCase()}`,
    "/runs?actor=nobody-at-all",
    "/runs?created=2015-01-01..2016-01-01",
    `/runs?created=${encodeURIComponent(`>=${new Date((one?.createdAt ?? 0) * 1_000).toISOString().slice(0, 19)}Z`)}`,
    ...all().map(({ id }) => `/runs/${id}`),
  ];
};

test("workflows and runs are copied, with the filters of their lists; what is not there is not", async () => {
  expect(all().length).toBe(9);
  await expectHeld(everyList());
  for (const path of ["/runs/1", "/workflows/1", "/workflows/none.yml"]) {
    const absent = await get(path);
    expect([path, absent.status, isPassed(absent)]).toEqual([path, 404, false]);
  }
});

test("jobs of old runs are not copied until somebody asks for them", async () => {
  const count = async () => (await world.ctx.db.query(sql`select from workflow_jobs`)).length;
  expect(await count()).toBe(0);
  const [old, other] = all();
  if (!old || !other) throw new Error("There are no runs");
  expect(isPassed(await get(`/runs/${old.id}/jobs`))).toBe(true);
  await pass(60_000);
  await expectHeld([`/runs/${old.id}/jobs`, `/runs/${old.id}/jobs?filter=all&per_page=1`]);
  await expectHeld(old.jobs.map(({ id }) => `/jobs/${id}`));
  expect(await count()).toBe(old.jobs.length);
  const rows = await world.ctx.db.query(sql`select from workflow_job_lists where parent_id = ${other.id}`);
  expect(rows).toEqual([]);
});

test("what webhooks tell is there at once, with the jobs and their steps, and costs nothing", async () => {
  const spent = () => world.simulator.meter.read().charged;
  world.simulator.meter.reset();
  const made = start("CI", ["build", "test"]);
  await world.settle();
  expect(spent()).toBe(0);
  await expectHeld([`/runs/${made.id}`, `/runs/${made.id}/jobs`, ...made.jobs.map(({ id }) => `/jobs/${id}`)]);
  world.simulator.meter.reset();
  run(made, "failure");
  await world.settle();
  expect(spent()).toBe(0);
  await expectHeld([`/runs/${made.id}`, `/runs/${made.id}/jobs`, "/runs", "/runs?status=failure"]);
  await expectHeld(made.jobs.map(({ id }) => `/jobs/${id}`));
});

test("a workflow that a run's webhook shows is there before the list is read again", async () => {
  const made = start("Brand new");
  await world.settle();
  await expectHeld([`/workflows/${made.workflow.id}`, "/workflows/brand-new.yml", "/workflows"]);
});

test("a run that is run again has the jobs of both attempts, and the latest are shown", async () => {
  const made = start("CI", ["build", "test"]);
  run(made);
  await world.settle();
  tick();
  rerun(world.simulator.world, by(), made);
  await world.settle();
  await expectHeld([`/runs/${made.id}`]);
  run(made);
  await world.settle();
  for (let round = 0; round < 2; round++) await pass(60_000);
  await expectHeld([`/runs/${made.id}`, `/runs/${made.id}/jobs`, `/runs/${made.id}/jobs?filter=all`]);
});

test("runs, jobs and workflows of which no webhook told are found within the hour, and told to targets", async () => {
  const upstream = world.simulator.world;
  tick();
  const workflow = workflowOf(upstream, { repository, name: "Unheard" });
  const headSha = repository.branches.get(repository.defaultBranch) ?? "";
  const unheard = addWorkflowRun(upstream, by(), { workflow, headSha });
  addWorkflowJob(upstream, unheard, { name: "quiet", conclusion: "success", at: upstream.now() });
  const heard = start("CI", ["half"]);
  await world.settle();
  const [hook] = repository.rows.hooks.values();
  if (!hook) throw new Error("There is no hook");
  hook.active = false;
  run(heard);
  await world.settle();
  hook.active = true;
  for (let round = 0; round < 3; round++) await pass(HOUR / 2);
  await expectHeld(["/runs", "/workflows", `/runs/${unheard.id}`, `/runs/${heard.id}`, `/runs/${heard.id}/jobs`]);
  await get(`/runs/${unheard.id}/jobs`);
  await pass(60_000);
  await expectHeld([`/runs/${unheard.id}/jobs`]);
  await makeEvents(world.ctx);
  const events = await world.ctx.db.query<{ event: string; action: string }>(sql`
    select event, action from events where event like 'workflow%' and is_made order by id`);
  expect(events.map(({ event, action }) => `${event}.${action}`)).toEqual(
    expect.arrayContaining(["workflow_run.requested", "workflow_run.completed", "workflow_job.completed"]),
  );
});

test.skipIf(!hasGh)(
  "gh lists and views runs and workflows, and upstream is asked for nothing that is mirrored",
  async () => {
    await using resources = new AsyncDisposableStack();
    const gh = await openGh(world, resources);
    const made = start("For gh", ["build", "test"]);
    run(made);
    await world.settle();
    world.simulator.meter.reset();
    const said = async (...args: string[]) => {
      const { status, out, err } = await gh([...args, "-R", world.first]);
      expect([status, err], args.join(" ")).toEqual([0, ""]);
      return out;
    };
    const listed = await said("run", "list");
    expect(listed).toContain(String(made.id));
    expect(listed).toContain("For gh");
    const [first] = JSON.parse(await said("run", "list", "--json", "databaseId,status,conclusion,workflowName,event"));
    expect(first).toEqual({
      ...{ databaseId: made.id, status: "completed", conclusion: "success", workflowName: "For gh", event: "push" },
    });
    expect(await said("workflow", "list")).toContain("For gh");
    const { jobs } = JSON.parse(await said("run", "view", String(made.id), "--json", "jobs"));
    expect(jobs.map(({ name, steps }: { name: string; steps: unknown[] }) => [name, steps.length])).toEqual([
      ...[
        ["build", 4],
        ["test", 4],
      ],
    ]);
    expect(world.simulator.meter.read().requests).toBe(0);
    const viewed = await said("run", "view", String(made.id));
    for (const name of ["build", "test"]) expect(viewed).toContain(name);
    // Artifacts and annotations are not mirrored.
    expect(Object.keys(world.simulator.meter.read().routes).toSorted()).toEqual([
      "GET /repos/:owner/:repo/actions/runs/:id/artifacts",
      "GET /repos/:owner/:repo/check-runs/:id/annotations",
    ]);
  },
);

test("what upstream disabled or deleted, of which nothing tells, is so here within a day", async () => {
  const upstream = world.simulator.world;
  const gone = start("Short-lived");
  run(gone);
  await world.settle();
  await expectHeld([`/runs/${gone.id}/jobs`]);
  const [job] = gone.jobs;
  deleteWorkflowRun(upstream, gone);
  deleteWorkflow(upstream, gone.workflow);
  setWorkflowState(upstream, workflowOf(upstream, { repository, name: "CI" }), "disabled_manually");
  for (let round = 0; round < 3; round++) await pass(9 * HOUR);
  await expectHeld([`/runs/${gone.id}`, `/runs/${gone.id}/jobs`, "/runs", "/workflows", "/workflows/ci.yml"]);
  const rows = await world.ctx.db.query(sql`
    select from workflow_jobs where id = ${job?.id ?? 0} and deleted_at is null`);
  expect(rows).toEqual([]);
});

test("the runs of a workflow that is gone stay, and upstream is asked what it shows of them", async () => {
  const upstream = world.simulator.world;
  const left = start("Left behind");
  run(left);
  await world.settle();
  deleteWorkflow(upstream, left.workflow);
  for (let round = 0; round < 2; round++) await pass(HOUR);
  await expectHeld([`/runs/${left.id}`, `/runs/${left.id}/jobs`, `/workflows/${left.workflow.id}`]);
  expect(isPassed(await get(`/workflows/${left.workflow.id}/runs`))).toBe(true);
});

test("writes pass through, and the next read shows what they changed", async () => {
  const write = (method: string, path: string, json?: object) =>
    askAt(world.url, method, at(path), { token: PUSHER, ...(json && { body: JSON.stringify(json) }) });
  const made = start("Written");
  await world.settle();
  expect((await write("POST", `/runs/${made.id}/cancel`)).status).toBe(202);
  await expectHeld([`/runs/${made.id}`]);
  await world.settle();
  expect((await write("POST", `/runs/${made.id}/rerun`)).status).toBe(201);
  await expectHeld([`/runs/${made.id}`]);
  await world.settle();
  run(made);
  await world.settle();
  expect((await write("PUT", `/workflows/${made.workflow.id}/disable`)).status).toBe(204);
  await expectHeld([`/workflows/${made.workflow.id}`]);
  expect((await write("PUT", "/workflows/written.yml/enable")).status).toBe(204);
  await expectHeld([`/workflows/${made.workflow.id}`]);
  expect((await write("POST", "/workflows/written.yml/dispatches", { ref: repository.defaultBranch })).status).toBe(
    204,
  );
  await world.settle();
  await expectHeld(["/runs?event=workflow_dispatch", "/runs"]);
  expect((await write("DELETE", `/runs/${made.id}`)).status).toBe(204);
  await expectHeld([`/runs/${made.id}`, "/runs"]);
});

test("a time that the mirror cannot read is left to upstream", async () => {
  expect(isPassed(await get("/runs?created=yesterday"))).toBe(true);
});

test("a token without the right to Actions is refused them, and one with it is not", async () => {
  const of = (permissions: readonly Permission[]) =>
    createApiToken(world.ctx, { userId: repository.ownerId, canWrite: false, permissions });
  const without = await of(["contents:read", "checks:read", "statuses:read", "deployments:read"]);
  const having = await of(["actions:read"]);
  const [one] = all();
  const { jobs } = start("Rights");
  await world.settle();
  for (const path of ["/workflows", "/workflows/ci.yml", "/runs", `/runs/${one?.id}`, `/jobs/${jobs[0]?.id}`]) {
    expect([path, (await get(path, without)).status]).toEqual([path, 403]);
    const shown = await get(path, having);
    expect([path, isPassed(shown), shown.status]).toEqual([path, false, 200]);
    expect([path, (await get(path, null)).status]).not.toEqual([path, 200]);
  }
});

test("a part that is mirrored no more is served no more, and is read again when it is selected again", async () => {
  const { ctx } = world;
  await settleParts({ ...ctx, config: { ...ctx.config, mirror: [] } });
  for (const path of ["/runs", "/workflows"]) expect([path, isPassed(await get(path))]).toEqual([path, true]);
  await settleParts(ctx);
  for (const path of ["/runs", "/workflows"]) expect([path, isPassed(await get(path))]).toEqual([path, true]);
  await pass(60_000);
  await expectHeld(["/runs", "/workflows"]);
});

import { expect, test } from "vitest";
import { createPull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { APP_ID, openAppWorld } from "./app-world.ts";
import { addedHook } from "./hooked.ts";
import { openReceiver, rels, type Simulated } from "./simulated.ts";

const DEMO = "/repos/octo/demo";

/** A pull request `topic` → `main` of `octo/demo`, and an App that may write checks. */
async function open(options: SimulatorOptions = {}) {
  const permissions = { checks: "write", statuses: "write", contents: "write", pull_requests: "read" } as const;
  const it = await openAppWorld({ permissions, events: [] }, options);
  const pull = pullFrom(it, it.repository);
  return { ...it, pull, sha: pull.pull.head.sha, mutate: mutating(it) };
}

function pullFrom({ simulator: { world }, owner }: Simulated, repository: Repository): PullIssue {
  pushBranch(world, owner.id, repository, "topic");
  const source = { repository, headRepository: repository, headRef: "topic", baseRef: "main" };
  return createPull(world, owner.id, { ...source, title: "topic" });
}

function mutating(it: Simulated) {
  return async (op: string, given: object = {}) => {
    const reply = await it.control("POST", "/-/mutate", { op, repository: "octo/demo", ...given });
    expect(reply.status, reply.text).toBe(200);
    return reply.body;
  };
}

test("a run is made by an App, goes on, and ends; nobody else may write one", async () => {
  await using it = await open();
  const token = await it.token();
  const body = { name: "build", head_sha: it.sha, status: "in_progress", output: { title: "t", summary: "s" } };
  const refused = await it.ask("POST", `${DEMO}/check-runs`, { body });
  expect([refused.status, refused.body.message]).toEqual([403, "You must authenticate via a GitHub App."]);
  const made = await it.ask("POST", `${DEMO}/check-runs`, { body, token });
  expect(made.status).toBe(201);
  expect(made.headers.get("location")).toBe(made.body.url);
  expect(made.body).toMatchObject({
    ...{
      name: "build",
      head_sha: it.sha,
      status: "in_progress",
      conclusion: null,
      external_id: "",
      completed_at: null,
    },
    ...{ app: { id: APP_ID }, pull_requests: [{ number: it.pull.number, head: { ref: "topic" } }] },
  });
  const at = `${DEMO}/check-runs/${made.body.id}`;
  const notes = (count: number) =>
    Array.from({ length: count }, (_, line) => ({
      ...{ path: "a.ts", start_line: line + 1, end_line: line + 1, annotation_level: "warning", message: "m" },
    }));
  const noted = (count: number) => ({ output: { summary: "s", annotations: notes(count) } });
  await it.ask("PATCH", at, { body: noted(50), token });
  const more = await it.ask("PATCH", at, { body: noted(50), token });
  expect(more.body.output.annotations_count).toBe(100);
  expect((await it.ask("PATCH", at, { body: noted(51), token })).status).toBe(422);
  expect((await it.get(`${at}/annotations?per_page=60&page=2`)).body).toHaveLength(40);
  const done = await it.ask("PATCH", at, { body: { conclusion: "success" }, token });
  expect(done.body).toMatchObject({ status: "completed", conclusion: "success", completed_at: "2026-10-01T12:00:00Z" });
  expect((await it.ask("PATCH", at, { body: { status: "in_progress" }, token })).status).toBe(422);
  const unknown = { name: "build", head_sha: "f".repeat(40) };
  const none = await it.ask("POST", `${DEMO}/check-runs`, { body: unknown, token });
  expect([none.status, none.body.message]).toEqual([422, `No commit found for SHA: ${"f".repeat(40)}`]);
});

test("an App changes its own runs alone", async () => {
  await using it = await open();
  const { id } = await it.mutate("createCheckRun", { number: it.pull.number, name: "lint", app: "another" });
  const reply = await it.ask("PATCH", `${DEMO}/check-runs/${id}`, {
    body: { conclusion: "failure" },
    token: await it.token(),
  });
  const text = `Invalid app_id \`${APP_ID}\` - check run can only be modified by the GitHub App that created it.`;
  expect([reply.status, reply.body.message]).toEqual([403, text]);
});

test("reruns supersede inside a suite alone, and lists filter by name, state and App", async () => {
  await using it = await open();
  const number = it.pull.number;
  await it.mutate("createCheckRun", { number, name: "build", conclusion: "failure" });
  await it.mutate("createCheckRun", { number, name: "build", conclusion: "success" });
  const suite = await it.mutate("createCheckSuite", { number });
  await it.mutate("createCheckRun", { number, name: "build", suite: suite.id, conclusion: "cancelled" });
  await it.mutate("createCheckRun", { number, name: "lint", app: "linter" });
  const at = `${DEMO}/commits/heads/topic/check-runs`;
  const shown = async (query: string) => {
    const { body } = await it.get(`${at}?${query}`);
    expect(body.total_count).toBe(body.check_runs.length);
    return body.check_runs.map((run: { name: string; conclusion: string }) => `${run.name} ${run.conclusion}`);
  };
  expect(await shown("")).toEqual(["lint null", "build cancelled", "build success"]);
  expect(await shown("filter=all")).toEqual(["lint null", "build cancelled", "build success", "build failure"]);
  expect(await shown("check_name=lint")).toEqual(["lint null"]);
  expect(await shown("status=completed")).toEqual(["build cancelled", "build success"]);
  expect(await shown("app_id=15368&filter=all")).toHaveLength(3);
  const page = await it.get(`${at}?per_page=2`);
  expect([page.body.total_count, page.body.check_runs.length, rels(page)]).toEqual([3, 2, ["next", "last"]]);
  expect([page.headers.get("etag") !== null, page.headers.get("last-modified")]).toEqual([true, null]);
  const suites = await it.get(`${DEMO}/commits/${it.sha}/check-suites`);
  expect(suites.body.check_suites).toMatchObject([
    { status: "completed", conclusion: "success", latest_check_runs_count: 1, head_branch: "topic" },
    { status: "completed", conclusion: "cancelled", latest_check_runs_count: 1 },
    { status: "queued", conclusion: null, app: { slug: "linter" } },
  ]);
});

test("what is no commit is refused, and an empty repository says that it is empty", async () => {
  await using it = await open();
  for (const below of ["", "/check-runs", "/check-suites", "/status", "/statuses", "/pulls"]) {
    const reply = await it.get(`${DEMO}/commits/none${below}`);
    expect([reply.status, reply.body.message], below).toEqual([422, "No commit found for SHA: none"]);
  }
  const { world } = it.simulator;
  world.addRepository({ ownerId: it.owner.id, name: "empty", branches: new Map() });
  for (const below of ["/commits", "/commits/main/check-runs", "/commits/main/status"]) {
    const reply = await it.get(`/repos/octo/empty${below}`);
    expect([reply.status, reply.body.message], below).toEqual([409, "Git Repository is empty."]);
  }
});

test("the combined state is the worst of the latest, and pending where nothing was said", async () => {
  await using it = await open();
  const at = `${DEMO}/commits/topic/status`;
  const state = async () => (await it.get(at)).body.state;
  expect((await it.get(at)).body).toMatchObject({ state: "pending", total_count: 0, statuses: [], sha: it.sha });
  const say = (body: object) => it.ask("POST", `${DEMO}/statuses/${it.sha}`, { body });
  const made = await say({ state: "success", context: "ci/Build", target_url: "https://ci.invalid/1" });
  expect([made.status, made.headers.get("location")]).toEqual([201, `${it.simulator.url}${DEMO}/statuses/${it.sha}`]);
  expect(made.body).toMatchObject({ context: "ci/Build", creator: { login: "octo" } });
  expect(await state()).toBe("success");
  await it.mutate("createCheckRun", { sha: it.sha, name: "build", conclusion: "failure" });
  expect(await state()).toBe("success"); // This state counts no check runs.
  await say({ state: "pending" });
  expect(await state()).toBe("pending");
  await say({ state: "error", context: "CI/build" });
  expect(await state()).toBe("failure");
  const combined = (await it.get(at)).body;
  expect(combined.statuses.map((one: { context: string }) => one.context)).toEqual(["default", "CI/build"]);
  expect(combined.statuses[0]).not.toHaveProperty("creator");
  const list = (await it.get(`${DEMO}/commits/topic/statuses`)).body;
  expect(list.map((one: { state: string }) => one.state)).toEqual(["error", "pending", "success"]);
  expect((await it.get(`${DEMO}/statuses/${it.sha}`)).body).toEqual(list);
  expect((await say({ state: "fine" })).status).toBe(422);
});

test("who may not read checks is told so, and fine-grained tokens never may", async () => {
  await using it = await open();
  const { world, tokens } = it.simulator;
  const secret = world.repositoryByName("octo", "secret")?.repository;
  if (!secret) throw new Error("There is no secret repository");
  await it.mutate("createCheckRun", { repository: "octo/secret", name: "build", conclusion: "success" });
  await it.mutate("createStatus", { repository: "octo/secret", state: "success" });
  const runs = "/repos/octo/secret/commits/main/check-runs";
  const fine = tokens.create({ login: "octo", kind: "fine-grained" }).value;
  const refused = await it.get(runs, { token: fine });
  expect([refused.status, refused.body.message]).toEqual([403, "Resource not accessible by personal access token"]);
  expect((await it.get("/repos/octo/secret/commits/main/status", { token: fine })).status).toBe(200);
  const metadata = await it.token({ permissions: { metadata: "read" } });
  expect((await it.get(runs, { token: metadata })).headers.get("x-accepted-github-permissions")).toBe("checks=read");
  expect((await it.get(runs, { token: await it.token({ permissions: { checks: "read" } }) })).body.total_count).toBe(1);
  // GraphQL refuses each run by itself, and still shows their sum.
  pullFrom(it, secret);
  await it.mutate("createCheckRun", { repository: "octo/secret", number: 1, name: "build", conclusion: "success" });
  await it.mutate("createStatus", { repository: "octo/secret", number: 1, state: "success" });
  const query = `{ repository(owner: "octo", name: "secret") { pullRequest(number: 1) { statusCheckRollup { state
    contexts(first: 5) { totalCount nodes { __typename } } } } } }`;
  const { body } = await it.ask("POST", "/graphql", { token: fine, body: { query } });
  expect(body.data.repository.pullRequest.statusCheckRollup).toEqual({
    state: "SUCCESS",
    contexts: { totalCount: 2, nodes: [null, { __typename: "StatusContext" }] },
  });
  expect(body.errors).toMatchObject([
    {
      type: "FORBIDDEN",
      path: ["repository", "pullRequest", "statusCheckRollup", "contexts", "nodes", 0],
    },
  ]);
});

test("hooks hear how runs begin and end and nothing between; the App alone is asked to run them again", async () => {
  await using it = await open({ webhooks: { concurrency: 1 } });
  await using receiver = await openReceiver();
  await using forApp = await openReceiver();
  await addedHook(it, receiver.url);
  const app = it.simulator.apps.byId.get(APP_ID);
  if (app) it.simulator.apps.edit(app, { webhook: { url: forApp.url, contentType: "json" } });
  const number = it.pull.number;
  const run = await it.mutate("createCheckRun", { number, name: "build", app: "mirror" });
  await it.mutate("editCheckRun", { run: run.id, status: "in_progress" });
  const other = await it.mutate("createCheckRun", { number, name: "lint", app: "mirror" });
  await it.mutate("editCheckRun", { run: run.id, conclusion: "success" });
  await it.mutate("editCheckRun", { run: other.id, conclusion: "skipped" });
  await it.mutate("createStatus", { number, state: "success" });
  await it.mutate("rerequestCheckRun", { run: run.id });
  await it.mutate("rerequestCheckSuite", { suite: run.check_suite.id });
  await it.simulator.quiet();
  expect(receiver.names()).toEqual([
    "check_run.created",
    "check_run.created",
    "check_run.completed",
    "check_run.completed",
    "check_suite.completed",
    "status",
  ]);
  expect(forApp.names()).toEqual(["check_run.rerequested", "check_suite.rerequested"]);
  expect(receiver.heard[0]?.payload.check_run).toMatchObject({
    check_suite: { head_branch: "topic", after: it.sha, status: "queued", app: { slug: "mirror" } },
  });
  expect(receiver.heard[4]?.payload.check_suite).toMatchObject({ conclusion: "success", latest_check_runs_count: 2 });
  expect(receiver.heard[5]?.payload).toMatchObject({
    ...{ name: "octo/demo", sha: it.sha, created_at: "2026-10-01T12:00:00+00:00" },
    ...{ commit: { sha: it.sha }, branches: [{ name: "topic" }] },
  });
  const suite = await it.get(`${DEMO}/check-suites/${run.check_suite.id}`);
  expect(suite.body).toMatchObject({ status: "queued", conclusion: null });
  expect((await it.get(`${DEMO}/check-runs/${run.id}`)).body.status).toBe("completed");
});

test("the rollup is null, pending, failed or fine as its contexts are, and counts superseded suites", async () => {
  await using it = await open();
  const query = `query($number: Int!) { rateLimit { cost } repository(owner: "octo", name: "demo") { pullRequest(number: $number) {
    commits(last: 1) { totalCount nodes { commit { oid message status { state contexts { context } } statusCheckRollup { state
      contexts(first: 10) { totalCount checkRunCount checkRunCountsByState { state count } nodes { __typename
        ... on CheckRun { databaseId name status conclusion checkSuite { app { slug } } isRequired(pullRequestNumber: $number) }
        ... on StatusContext { context state } } } } } } } } } }`;
  const head = async () => {
    const { body } = await it.ask("POST", "/graphql", { body: { query, variables: { number: it.pull.number } } });
    expect(body.errors).toBeUndefined();
    return body.data.repository.pullRequest.commits;
  };
  const rollup = async () => (await head()).nodes[0].commit.statusCheckRollup;
  expect(await head()).toMatchObject({
    totalCount: it.pull.pull.commits,
    nodes: [{ commit: { oid: it.sha, status: null, statusCheckRollup: null } }],
  });
  const number = it.pull.number;
  const run = await it.mutate("createCheckRun", { number, name: "build" });
  expect((await rollup()).state).toBe("PENDING");
  await it.mutate("editCheckRun", { run: run.id, conclusion: "cancelled" });
  const suite = await it.mutate("createCheckSuite", { number });
  await it.mutate("createCheckRun", { number, name: "build", suite: suite.id, conclusion: "success" });
  expect((await rollup()).state).toBe("FAILURE");
  await it.mutate("createCheckRun", { number, name: "build", suite: run.check_suite.id, conclusion: "neutral" });
  await it.mutate("createStatus", { number, state: "success", context: "ci" });
  expect(await rollup()).toMatchObject({
    state: "SUCCESS",
    contexts: {
      totalCount: 3,
      checkRunCount: 2,
      checkRunCountsByState: [
        { state: "SUCCESS", count: 1 },
        { state: "NEUTRAL", count: 1 },
      ],
      nodes: [
        {
          __typename: "CheckRun",
          status: "COMPLETED",
          checkSuite: { app: { slug: "github-actions" } },
          isRequired: false,
        },
        { __typename: "CheckRun", conclusion: "NEUTRAL" },
        { __typename: "StatusContext", context: "ci", state: "SUCCESS" },
      ],
    },
  });
  await it.mutate("createStatus", { number, state: "error", context: "ci" });
  expect((await rollup()).state).toBe("ERROR");
});

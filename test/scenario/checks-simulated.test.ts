import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { checkApp, createCheckRun, createStatus, editCheckRun } from "../../src/simulator/changes/checks.ts";
import { pushToPull } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { PullIssue } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markChecksDue, markRefsDue } from "../support/due.ts";
import { openWorld } from "../support/world.ts";

// Checks against an upstream that has checks of its own. Each answer must equal upstream's. `checks.test.ts` tests the
// same part by part.

const ROLLUP = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
  pullRequest(number: $number) { statusCheckRollup { state contexts(first: 50) { totalCount checkRunCount statusContextCount
    nodes { __typename ... on CheckRun { id databaseId name status conclusion startedAt completedAt detailsUrl title summary }
      ... on StatusContext { id context state description targetUrl createdAt creator { login } } } } } } } }`;

test("checks of a pull request are answered as upstream answers them, from the first copy through a push and a lost webhook", async () => {
  await using world = await openWorld({
    env: { MIRROR: "checks,refs" },
    fill: ({ world: filled }) => void generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 6 }),
  });
  const { simulator, ctx, token, first } = world;
  const [owner = "", name = ""] = first.split("/");
  const repository = simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  const pulls = [...repository.rows.issuesByCreated.ascending()].filter((one): one is PullIssue => isPull(one));
  const pull = pulls.find(({ state, pull: { head } }) => state === "open" && head.repositoryId === repository.id);
  if (!pull) throw new Error("No pull request is open");
  // As a bot asks that makes such branches: their names have slashes, which it sends as they are.
  const { ref } = pull.pull.head;
  expect(ref).toContain("/");
  const by = repository.ownerId;
  const app = checkApp(simulator.world, "linter");
  const build = (conclusion?: "success" | "failure") =>
    createCheckRun(simulator.world, by, {
      ...{ repository, app, headSha: pull.pull.head.sha, name: "build" },
      ...(conclusion && { conclusion }),
    });

  const pass = async (ms: number) => {
    await world.settle();
    world.advance(ms);
    await markChecksDue(ctx);
    await markRefsDue(ctx);
    await ctx.queues.refresh.clean(0, 1_000, "delayed");
    await dispatchMarks(ctx);
    await world.settle();
  };
  const expectSame = async () => {
    const sha = pull.pull.head.sha;
    for (const path of [sha, ref, encodeURIComponent(ref), `heads/${ref}`, repository.defaultBranch].flatMap((one) => [
      `/commits/${one}/check-runs`,
      `/commits/${one}/statuses`,
      `/commits/${one}/status`,
    ])) {
      const ours = await askAt(world.url, "GET", `/repos/${first}${path}`, { token });
      const theirs = await askAt(simulator.url, "GET", `/repos/${first}${path}`, { token: UPSTREAM_TOKEN });
      expect(ours.headers.has("x-tain-passed-through"), path).toBe(false);
      const shown = rebased(theirs.text, simulator.url, world.url);
      // The simulator shows more of the repository here than the service's own description has.
      const isCombined = path.endsWith("/status");
      expect(ours.body, path).toEqual(isCombined ? { ...(shown as object), repository: ours.body.repository } : shown);
    }
    for (const { id, status, annotations } of simulator.world.code.checkRuns.values()) {
      const path = `/repos/${first}/check-runs/${id}/annotations`;
      const ours = await askAt(world.url, "GET", path, { token });
      const theirs = await askAt(simulator.url, "GET", path, { token: UPSTREAM_TOKEN });
      const isHead = (await askAt(world.url, "GET", `/repos/${first}/check-runs/${id}`, { token })).headers;
      const isHeld = !isHead.has("x-cache") && status === "completed" && annotations.length === 0;
      expect([path, ours.headers.has("x-cache"), ours.body]).toEqual([path, !isHeld, theirs.body]);
    }
    const body = JSON.stringify({ query: ROLLUP, variables: { owner, name, number: pull.number } });
    const ours = await askAt(world.url, "POST", "/graphql", { token, body });
    const theirs = await askAt(simulator.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body });
    expect(ours.body).toEqual(theirs.body);
  };

  pushToPull(simulator.world, by, pull);
  build("failure");
  createStatus(simulator.world, by, { repository, sha: pull.pull.head.sha, state: "pending", context: "ci" });
  await world.mirror(first);
  await world.listen(first);
  await pass(60_000);
  await expectSame();

  pushToPull(simulator.world, by, pull);
  const run = build();
  await pass(60_000);
  await expectSame();
  editCheckRun(simulator.world, by, run, { conclusion: "success" });
  createStatus(simulator.world, by, { repository, sha: pull.pull.head.sha, state: "success", context: "ci" });
  await pass(60_000);
  await expectSame();

  // Where nothing protects the base, nothing is required. Else only upstream knows.
  const required = `query($owner: String!, $name: String!, $number: Int!, $id: ID!) {
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { statusCheckRollup { contexts(first: 50) { nodes {
      ... on CheckRun { name isRequired(pullRequestNumber: $number) }
      ... on StatusContext { context isRequired(pullRequestId: $id) } } } } } } }`;
  const { body: shown } = await askAt(simulator.url, "GET", `/repos/${first}/pulls/${pull.number}`, {
    token: UPSTREAM_TOKEN,
  });
  const variables = { owner, name, number: pull.number, id: shown.node_id };
  const askRequired = (base: string, as = UPSTREAM_TOKEN) =>
    askAt(base, "POST", "/graphql", { token: as, body: JSON.stringify({ query: required, variables }) });
  const theirs = await askRequired(simulator.url);
  const queues = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
    mergeQueue { id } named: mergeQueue(branch: "main") { id }
    pullRequest(number: $number) { isInMergeQueue isMergeQueueEnabled baseRef { branchProtectionRule { requiresStrictStatusChecks } } } } }`;
  for (const isProtected of [false, true]) {
    await ctx.db.query(sql`update refs set protected = ${isProtected} where name = ${pull.pull.base.ref}`);
    const ours = await askRequired(world.url);
    expect([isProtected, ours.headers.has("x-tain-passed-through"), ours.body]).toEqual([
      ...[isProtected, isProtected],
      theirs.body,
    ]);
    const free = { isInMergeQueue: false, isMergeQueueEnabled: false, baseRef: { branchProtectionRule: null } };
    const asked = { token: UPSTREAM_TOKEN, body: JSON.stringify({ query: queues, variables }) };
    const queued = await askAt(world.url, "POST", "/graphql", asked);
    expect(queued.headers.has("x-tain-passed-through")).toBe(isProtected);
    if (!isProtected)
      expect(queued.body).toEqual({ data: { repository: { mergeQueue: null, named: null, pullRequest: free } } });
    const { errors } = (await askRequired(world.url, token)).body;
    expect(errors?.[0]?.path?.at(-1)).toBe(isProtected ? "isRequired" : undefined);
  }
  await ctx.db.query(sql`update refs set protected = false`);

  // A status that is made through the mirror is shown at once, and nobody is asked about it.
  const made = { state: "pending", context: "through", description: "of the mirror's" };
  const sent = { token: UPSTREAM_TOKEN, body: JSON.stringify(made) };
  const path = `/repos/${first}/statuses/${pull.pull.head.sha}`;
  expect(await askAt(world.url, "POST", path, sent)).toMatchObject({ status: 201, body: made });
  simulator.meter.reset();
  for (const isHeard of [false, true]) {
    if (isHeard) await pass(60_000);
    const shown = await askAt(world.url, "GET", `/repos/${first}/commits/${pull.pull.head.sha}/statuses`, { token });
    expect([shown.headers.has("x-cache"), shown.body[0]]).toMatchObject([false, made]);
  }
  const { routes } = simulator.meter.read();
  expect(Object.keys(routes).filter((route) => route.includes("status"))).toEqual([]);
  await expectSame();

  // The rerun's webhooks are all lost.
  simulator.setFaults({ webhooks: { fail: 1 } });
  build("failure");
  await pass(2 * 3_600_000);
  await expectSame();
});

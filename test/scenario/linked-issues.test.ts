/** Linked issues: what an event tells of, what it only touches, and what no event tells. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { addBlocker, addSubIssue, removeBlocker, removeSubIssue } from "../../src/simulator/changes/links.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Issue, Repository } from "../../src/simulator/world/records.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let repository: Repository;
let by: number;
let issues: Issue[];

beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 12, pulls: 0 }),
  });
  const [owner = "", name = ""] = world.first.split("/");
  const found = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  by = repository.ownerId;
  issues = [...repository.rows.issuesByCreated.ascending()].filter(({ pull }) => !pull);
  for (const issue of issues) editIssue(world.simulator.world, by, issue, { state: "open" });
  await world.mirror(world.first);
  await world.listen(world.first);
  await world.settleMarks();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const truth = () => world.simulator.world;
/** The comparison leaves out the repository's counters, which are left to catch-ups. */
const differences = async () =>
  (await compare(world.ctx, world.simulator, world.first, (kind) => kind === "repository")).differences;

function someIssues(from: number): [Issue, Issue] {
  const [one, other] = issues.slice(from);
  if (!one || !other) throw new Error("The generated repository has too few issues");
  return [one, other];
}

async function shown({ number }: Issue) {
  const { body } = await world.get(`/repos/${world.first}/issues/${number}`);
  return body as Record<string, unknown>;
}

/** The requests that upstream charged, without GraphQL's points. */
async function costOf(act: () => void): Promise<number> {
  await world.settleMarks();
  world.simulator.meter.reset();
  act();
  await world.settleMarks();
  const { routes } = world.simulator.meter.read();
  const rest = Object.entries(routes).filter(([route]) => route !== "POST /graphql");
  return rest.reduce((sum, [, { charged }]) => sum + charged, 0);
}

test("a sub-issue that is added, closed and taken away shows in its parent's summary, though no updated_at moves", async () => {
  const [parent, child] = someIssues(0);
  expect(await costOf(() => addSubIssue(truth(), by, parent, child))).toBe(0);
  expect(await shown(parent)).toMatchObject({ sub_issues_summary: { total: 1, completed: 0 } });
  expect(await shown(child)).toHaveProperty("parent_issue_url", expect.stringMatching(`/issues/${parent.number}$`));

  // No webhook tells of the parent.
  expect(await costOf(() => void editIssue(truth(), by, child, { state: "closed" }))).toBe(0);
  expect(await shown(parent)).toMatchObject({ sub_issues_summary: { total: 1, completed: 1, percent_completed: 100 } });
  const document = `{ repository(owner: "${world.first.split("/")[0]}", name: "${repository.name}") {
    issue(number: ${parent.number}) { subIssuesSummary { total completed percentCompleted } } } }`;
  const answer = await fetch(`${world.url}/graphql`, {
    method: "POST",
    headers: { authorization: `bearer ${world.token}`, "user-agent": "test" },
    body: JSON.stringify({ query: document }),
  });
  expect(await answer.json()).toEqual({
    data: { repository: { issue: { subIssuesSummary: { total: 1, completed: 1, percentCompleted: 100 } } } },
  });

  // Only a read shows that the key is there no more.
  expect(await costOf(() => removeSubIssue(truth(), by, parent, child))).toBe(1);
  expect(await shown(child)).not.toHaveProperty("parent_issue_url");
  expect(await differences()).toEqual([]);
});

test("an issue that waits for another shows it, and shows when that is closed", async () => {
  const [blocked, blocking] = someIssues(2);
  await costOf(() => addBlocker(truth(), by, blocked, blocking));
  expect(await shown(blocked)).toMatchObject({ issue_dependencies_summary: { blocked_by: 1, total_blocked_by: 1 } });
  expect(await shown(blocking)).toMatchObject({ issue_dependencies_summary: { blocking: 1 } });
  // Two requests: the closed issue, and the list of the issues that wait for it.
  expect(await costOf(() => void editIssue(truth(), by, blocking, { state: "closed" }))).toBe(2);
  expect(await shown(blocked)).toMatchObject({ issue_dependencies_summary: { blocked_by: 0, total_blocked_by: 1 } });
  await costOf(() => removeBlocker(truth(), by, blocked, blocking));
  expect(await differences()).toEqual([]);
});

test("a type that is set and taken away is shown", async () => {
  const [issue] = someIssues(4);
  const [, bug] = truth().issueTypes;
  await costOf(() => void editIssue(truth(), by, issue, { typeId: bug?.id ?? 0 }));
  expect(await shown(issue)).toMatchObject({ type: { name: "Bug" } });
  await costOf(() => void editIssue(truth(), by, issue, { typeId: null }));
  expect(await shown(issue)).toMatchObject({ type: null });
  expect(await differences()).toEqual([]);
});

test("links that no webhook told of are found by an audit, and so is a parent that is there no more", async () => {
  const [parent, child] = someIssues(6);
  const audited = async () => {
    world.advance(60_000);
    const report = await audit(world.ctx, {
      repositoryId: repository.id,
      repair: true,
      signal: new AbortController().signal,
    });
    return report && driftCount(report);
  };
  const hooks = [...repository.rows.hooks.values()];
  for (const hook of hooks) hook.active = false;
  addSubIssue(truth(), by, parent, child);
  expect(await audited()).toBeGreaterThan(0);
  expect(await differences()).toEqual([]);
  expect(await shown(child)).toHaveProperty("parent_issue_url");

  removeSubIssue(truth(), by, parent, child);
  expect(await audited()).toBeGreaterThan(0);
  expect(await shown(child)).not.toHaveProperty("parent_issue_url");
  expect(await differences()).toEqual([]);
  expect(await audited()).toBe(0);
});

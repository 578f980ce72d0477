import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Permission } from "../../src/api/callers/permissions.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { addIssueEvent } from "../../src/simulator/changes/issue-events.ts";
import {
  createIssue,
  deleteIssue,
  editIssue,
  lockIssue,
  pinIssue,
  unlockIssue,
} from "../../src/simulator/changes/issues.ts";
import { mergePull, requestReviewers, setDraft } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Issue, PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { forgetValidatorsLike } from "../../src/upstream/conditional/validators.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markResourceListsDue } from "../support/due.ts";
import { countStatements } from "../support/statements.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let repository: Repository;
const READER = "ghp_reader";
const STRANGER = "ghp_stranger";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LIST = "GET /repos/:owner/:repo/issues/events";

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "issue-events" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 70, pulls: 30, issueEvents: true });
      for (const one of filled.repositories.values()) one.visibility = "private";
    },
  });
  const { simulator } = world;
  const [owner = "", name = ""] = world.first.split("/");
  const found = simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  const { userId } = simulator.tokens.create({ token: READER, login: "reader" });
  repository.collaborators.set(userId, "pull");
  simulator.tokens.create({ token: STRANGER, login: "stranger" });
  world.simulator.meter.reset();
  await world.mirror(world.first);
  await world.listen(world.first);
  await pass(MINUTE);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Lets the time pass at both ends alike, then does the scheduler's next round and all work that it asks for. */
async function pass(ms: number): Promise<void> {
  await world.settle();
  world.advance(ms);
  (world.simulator.world.clock as SettableClock).advance(ms);
  await markResourceListsDue(world.ctx);
  await world.ctx.queues.refresh.clean(0, 1_000, "delayed");
  await dispatchMarks(world.ctx);
  await world.settle();
}

/** Who does everything. It happens now, by both clocks. */
function by(): number {
  const clock = world.simulator.world.clock as SettableClock;
  clock.advance(Math.max(0, world.ctx.clock.now().getTime() - clock.now()));
  return repository.ownerId;
}
const at = (path: string) => `/repos/${world.first}${path}`;
const get = (path: string, token: string | null = world.token, headers: Record<string, string> = {}) =>
  askAt(world.url, "GET", at(path), { token, headers });
const upstreams = (path: string) => askAt(world.simulator.url, "GET", at(path), { token: UPSTREAM_TOKEN });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
const isOlder = ({ headers }: { headers: Headers }) => headers.get("warning")?.includes("111 tain") ?? false;
const listReads = () => world.simulator.meter.read().routes[LIST]?.requests ?? 0;
const issuesNow = () => [...repository.rows.issuesByCreated.ascending()];
const plain = () => issuesNow().filter((one) => !isPull(one));
const openPull = (): PullIssue => {
  const found = issuesNow().find((one) => isPull(one) && one.state === "open" && !one.pull.draft);
  if (!found || !isPull(found)) throw new Error("There is no open pull request");
  return found;
};
function newIssue(title: string): Issue {
  return createIssue(world.simulator.world, by(), { repository, title });
}

/** Expects the mirror to answer from its own rows, as upstream does. */
async function expectHeld(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const [ours, theirs] = [await get(path), await upstreams(path)];
    expect([path, isPassed(ours), isOlder(ours), ours.status]).toEqual([path, false, false, theirs.status]);
    if (theirs.status !== 200) continue;
    expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
    const links = (one: Headers) => one.get("link")?.replaceAll(`${world.simulator.url}/`, `${world.url}/`);
    expect([path, links(ours.headers)]).toEqual([path, links(theirs.headers)]);
  }
}

test("all events are copied, a request for each hundred, in the service's order and pages", async () => {
  const { size } = world.simulator.world.issueEvents.ofRepository(repository);
  expect(size).toBeGreaterThan(100);
  expect(listReads()).toBe(Math.ceil(size / 100));
  const [some] = world.simulator.world.issueEvents.byId.keys();
  await expectHeld([
    ...["/issues/events", "/issues/events?per_page=7&page=3", "/issues/events?per_page=100&page=2"],
    ...["/issues/events?page=999", `/issues/events/${some}`],
    ...issuesNow().flatMap(({ number }) => [`/issues/${number}/events`, `/issues/${number}/events?per_page=1&page=2`]),
  ]);
});

test("an answer says when the events were read, also one that was kept", async () => {
  const [one] = plain();
  const asked = [await get(`/issues/${one?.number}/events`), await get(`/issues/${one?.number}/events`)];
  const [list] = await world.ctx.db.query<{ readAt: Date }>(sql`select read_at as "readAt" from issue_event_lists`);
  for (const { headers } of asked) expect(headers.get("x-tain-confirmed-at")).toBe(list?.readAt.toISOString());
});

test("deliveries cost nothing: a lively hour without readers is one read of the list", async () => {
  const { world: upstream, meter } = world.simulator;
  const issue = newIssue("lively");
  await pass(HOUR);
  meter.reset();
  for (let minute = 0; minute < 55; minute += 5) {
    const label = repository.rows.labels.values().next().value;
    editIssue(upstream, by(), issue, { labelIds: minute % 10 === 0 && label ? [label.id] : [] });
    lockIssue(upstream, by(), issue);
    unlockIssue(upstream, by(), issue);
    await pass(5 * MINUTE);
  }
  expect(listReads()).toBe(0);
  await pass(6 * MINUTE);
  expect(listReads()).toBe(1);
  await expectHeld([`/issues/${issue.number}/events`]);
});

test("who asks for what has just happened gets upstream's answer, and one read serves all changes until then", async () => {
  const { world: upstream, meter } = world.simulator;
  const [one, other, untouched] = plain();
  if (!one || !other || !untouched) throw new Error("There are too few issues");
  await pass(6 * MINUTE);
  editIssue(upstream, by(), one, { title: "renamed once" });
  editIssue(upstream, by(), other, { title: "renamed too" });
  pinIssue(upstream, by(), other, !other.pinned);
  await world.settle();
  meter.reset();
  const first = await get(`/issues/${one.number}/events`, UPSTREAM_TOKEN);
  expect([isPassed(first), first.body.at(-1).event]).toEqual([true, "renamed"]);
  for (const { number } of [one, other]) {
    const ours = await get(`/issues/${number}/events`);
    expect([isPassed(ours), isOlder(ours), ours.status]).toEqual([false, true, 200]);
  }
  expect(isPassed(await get("/issues/events", UPSTREAM_TOKEN))).toBe(true);
  await expectHeld([`/issues/${untouched.number}/events`]);
  await pass(MINUTE);
  expect(listReads()).toBe(2); // The forwarded one, and the mirror's own.
  await expectHeld([one, other].map(({ number }) => `/issues/${number}/events`));
  await expectHeld(["/issues/events?per_page=5"]);
});

test("readers of a lively issue cost at most a read each five minutes", async () => {
  const { world: upstream, meter } = world.simulator;
  const issue = newIssue("asked for all the time");
  await pass(HOUR);
  meter.reset();
  for (let minute = 0; minute < 60; minute += 2) {
    editIssue(upstream, by(), issue, { title: `title ${minute}` });
    await world.settle();
    await get(`/issues/${issue.number}/events`);
    await pass(2 * MINUTE);
  }
  expect(listReads()).toBeGreaterThanOrEqual(8);
  expect(listReads()).toBeLessThanOrEqual(13);
});

test("what happens to pull requests is there, with its people, titles and commits", async () => {
  const { world: upstream } = world.simulator;
  const pull = openPull();
  const reviewer = [...upstream.users.values()].find(
    ({ id, type }) => type === "User" && id !== pull.authorId && id !== 10_137,
  );
  requestReviewers(upstream, by(), pull, [reviewer?.id ?? 0]);
  setDraft(upstream, by(), pull, true);
  setDraft(upstream, by(), pull, false);
  mergePull(upstream, by(), pull);
  await pass(HOUR);
  await expectHeld([`/issues/${pull.number}/events`, "/issues/events?per_page=10"]);
  const { body } = await get(`/issues/${pull.number}/events`);
  expect(body.map(({ event }: { event: string }) => event)).toEqual(
    expect.arrayContaining(["review_requested", "convert_to_draft", "ready_for_review", "merged", "closed"]),
  );
});

test("lost webhooks: what nobody told of is there within the hour", async () => {
  const { world: upstream } = world.simulator;
  const [hook] = repository.rows.hooks.values();
  const [issue] = plain();
  if (!hook || !issue) throw new Error("There is no hook");
  hook.active = false;
  editIssue(upstream, by(), issue, { title: "nobody told" });
  addIssueEvent(upstream, by(), issue, { happened: "referenced", commitId: upstream.newSha() });
  await world.settle();
  hook.active = true;
  await pass(HOUR);
  await world.catchUp();
  await expectHeld([`/issues/${issue.number}/events`]);
  const { body } = await get(`/issues/${issue.number}/events`);
  expect(body.map(({ event }: { event: string }) => event).slice(-2)).toEqual(["renamed", "referenced"]);
});

test("an event that is not here yet is asked of upstream; an id that names none is not found", async () => {
  const { world: upstream } = world.simulator;
  const [issue] = plain();
  if (!issue) throw new Error("There is no issue");
  const { id } = addIssueEvent(upstream, by(), issue, { happened: "referenced", commitId: upstream.newSha() });
  const shown = await get(`/issues/events/${id}`, UPSTREAM_TOKEN);
  expect([isPassed(shown), shown.status]).toEqual([true, 200]);
  expect((await get("/issues/events/none", UPSTREAM_TOKEN)).status).toBe(404);
});

test("events of a deleted issue are gone with it, and from the repository's list", async () => {
  const { world: upstream } = world.simulator;
  const issue = newIssue("short-lived");
  editIssue(upstream, by(), issue, { state: "closed" });
  await pass(HOUR);
  await expectHeld([`/issues/${issue.number}/events`]);
  const [event] = upstream.issueEvents.of(issue);
  deleteIssue(upstream, by(), issue);
  await world.settle();
  await world.settleMarks();
  expect((await get(`/issues/${issue.number}/events`)).status).toBe(410);
  const rows = await world.ctx.db.query(
    sql`select from issue_events where issue_number = ${issue.number} and deleted_at is null`,
  );
  expect(rows).toEqual([]);
  await pass(HOUR);
  await expectHeld(["/issues/events?per_page=3"]);
  expect((await get(`/issues/events/${event?.id}`, UPSTREAM_TOKEN)).status).toBe(404);
});

async function timeline(selection: string, number: number, token: string | null = UPSTREAM_TOKEN) {
  const [owner, name] = world.first.split("/");
  const query = `{ repository(owner: "${owner}", name: "${name}") { issueOrPullRequest(number: ${number}) {
    ... on Issue { timelineItems${selection} } ... on PullRequest { timelineItems${selection} } } } }`;
  const ask = (base: string, as: string | null) =>
    askAt(base, "POST", "/graphql", { token: as, body: JSON.stringify({ query }) });
  const [ours, theirs] = [await ask(world.url, token), await ask(world.simulator.url, UPSTREAM_TOKEN)];
  return { ours, theirs: rebased(theirs.text, world.simulator.url, world.url) };
}

test("GraphQL's timelines show events alone as upstream does, and all others are forwarded", async () => {
  const { world: upstream } = world.simulator;
  const issue = newIssue("on the timeline");
  const [label] = repository.rows.labels.values();
  editIssue(upstream, by(), issue, { labelIds: [label?.id ?? 0], assigneeIds: [by()] });
  editIssue(upstream, by(), issue, { title: "on the timelines" });
  lockIssue(upstream, by(), issue, "resolved");
  await pass(HOUR);
  const types = "LABELED_EVENT, ASSIGNED_EVENT, RENAMED_TITLE_EVENT, LOCKED_EVENT, CLOSED_EVENT";
  const nodes = `nodes { __typename ... on Node { id } ... on LabeledEvent { createdAt actor { login } label { name }
    labelable { ... on Issue { number } } } ... on AssignedEvent { assignee { ... on User { login } } }
    ... on RenamedTitleEvent { previousTitle currentTitle } ... on LockedEvent { lockReason } }`;
  for (const selection of [
    `(first: 10, itemTypes: [${types}]) { totalCount filteredCount pageCount ${nodes} pageInfo { hasNextPage } }`,
    `(last: 2, itemTypes: [${types}]) { totalCount filteredCount pageCount ${nodes} pageInfo { hasPreviousPage } }`,
    `(first: 10, since: "2100-01-01T00:00:00Z", itemTypes: [${types}]) { totalCount filteredCount ${nodes} }`,
  ]) {
    const { ours, theirs } = await timeline(selection, issue.number);
    expect([isPassed(ours), ours.body]).toEqual([false, theirs]);
  }
  const whole = await timeline(`(first: 10) { totalCount }`, issue.number);
  expect([isPassed(whole.ours), whole.ours.body]).toEqual([true, whole.theirs]);
  const own = await timeline(`(first: 10) { totalCount }`, issue.number, world.token);
  expect(own.ours.body.errors[0].message).toContain("issue-events");
});

test("a timeline that changed since it was read is upstream's, or says how old it is", async () => {
  const { world: upstream } = world.simulator;
  const [issue] = plain();
  if (!issue) throw new Error("There is no issue");
  await pass(HOUR);
  createComment(upstream, by(), issue, "@octocat look");
  await world.settle();
  const selection = "(last: 1, itemTypes: [MENTIONED_EVENT, CLOSED_EVENT]) { totalCount }";
  expect(isPassed((await timeline(selection, issue.number)).ours)).toBe(true);
  const { ours } = await timeline(selection, issue.number, world.token);
  expect([isPassed(ours), ours.body.errors]).toEqual([false, undefined]);
  const [list] = await world.ctx.db.query<{ readAt: Date }>(sql`select read_at as "readAt" from issue_event_lists`);
  // What was confirmed least lately decides, and here the repository may be that.
  const confirmedAt = Date.parse(ours.headers.get("x-tain-confirmed-at") ?? "");
  expect(confirmedAt).toBeLessThanOrEqual(list?.readAt.getTime() ?? 0);
  const marks = await world.ctx.db.query(sql`select from refresh_marks where kind = 'issue-events'`);
  expect(marks.length).toBe(1);
  await pass(6 * MINUTE);
  expect(isPassed((await timeline(selection, issue.number)).ours)).toBe(false);
});

test("a document asks once for a repository's events, whatever number of its issues has changed", async () => {
  const { world: upstream } = world.simulator;
  const changed = plain().slice(0, 5);
  for (const issue of changed) createComment(upstream, by(), issue, "@octocat look again");
  await world.settle();
  const [owner, name] = world.first.split("/");
  const fields = changed.map(
    ({ number }) => `i${number}: issue(number: ${number}) {
    timelineItems(last: 1, itemTypes: [MENTIONED_EVENT, CLOSED_EVENT]) { totalCount } }`,
  );
  const query = `{ repository(owner: "${owner}", name: "${name}") { ${fields.join(" ")} } }`;
  using statements = countStatements();
  const { body } = await askAt(world.url, "POST", "/graphql", { token: world.token, body: JSON.stringify({ query }) });
  expect(body.errors).toBeUndefined();
  expect(statements.texts().filter((text) => /select from refresh_marks m where m.kind/.test(text)).length).toBe(1);
  await pass(6 * MINUTE);
});

test("a private repository's events are shown to those who see it, by the kinds that they may read", async () => {
  const of = (permissions: readonly Permission[]) =>
    createApiToken(world.ctx, { userId: by(), canWrite: false, permissions });
  const [onlyIssues, onlyPulls, neither] = [
    await of(["issues:read"]),
    await of(["pull_requests:read"]),
    await of(["contents:read"]),
  ];
  await pass(HOUR);
  const [issue, pull] = [plain()[0], issuesNow().find(isPull)];
  const statuses = async (path: string, tokens: readonly (string | null)[]) => {
    const found: number[] = [];
    for (const token of tokens) found.push((await get(path, token)).status);
    return found;
  };
  const tokens = [onlyIssues, onlyPulls, neither, READER, STRANGER, null];
  expect(await statuses(`/issues/${issue?.number}/events`, tokens)).toEqual([200, 403, 403, 200, 404, 403]);
  expect(await statuses(`/issues/${pull?.number}/events`, tokens)).toEqual([403, 200, 403, 200, 404, 403]);
  expect(await statuses("/issues/events", tokens)).toEqual([200, 200, 403, 200, 404, 403]);
  const kinds = async (token: string) =>
    new Set(
      (await get("/issues/events?per_page=100", token)).body.map(
        (one: { issue: object }) => "pull_request" in one.issue,
      ),
    );
  expect([await kinds(onlyIssues), await kinds(onlyPulls)]).toEqual([new Set([false]), new Set([true])]);
});

test("what names a repository that the caller does not see is left out", async () => {
  const { world: upstream } = world.simulator;
  const [issue] = plain();
  if (!issue) throw new Error("There is no issue");
  const hidden = upstream.addRepository({ ownerId: by(), name: "hidden-away", visibility: "private" });
  const { id } = addIssueEvent(upstream, by(), issue, { happened: "referenced", commitId: "f".repeat(40) });
  await pass(HOUR);
  await world.ctx.db.query(sql`
    update issue_events set document = replace(document::text, '"commit_url":"\\u0001/', ${`"commit_url":"\\u0002/repos/${upstream.fullName(hidden)}/`})::json
      where id = ${id}`);
  await world.ctx.db.query(sql`update repositories set revision = nextval('revision') where id = ${repository.id}`);
  const mirrors = await get(`/issues/events/${id}`);
  expect(mirrors.body.commit_url).toContain("hidden-away");
  const { status, body } = await get(`/issues/events/${id}`, READER);
  expect([status, body.commit_id, body.commit_url]).toEqual([200, null, null]);
});

test("another issue is shown in an event only if it tells its repository", async () => {
  const { world: upstream } = world.simulator;
  const [issue] = plain();
  if (!issue) throw new Error("There is no issue");
  const { id } = addIssueEvent(upstream, by(), issue, { happened: "referenced" });
  await pass(HOUR);
  const links = {
    sub_issue: { number: 9, title: "told by nobody" },
    parent_issue: { number: 8, title: "told", repository: { id: repository.id, name: repository.name } },
  };
  await world.ctx.db.query(sql`
    update issue_events set document = (document::jsonb || ${JSON.stringify(links)}::jsonb)::json where id = ${id}`);
  await world.ctx.db.query(sql`update repositories set revision = nextval('revision') where id = ${repository.id}`);
  const { status, body } = await get(`/issues/events/${id}`, READER);
  expect([status, body.sub_issue, body.parent_issue]).toEqual([200, null, links.parent_issue]);
});

test("where upstream lists no older events, those of older issues are asked of it", async () => {
  const { world: upstream, faults } = world.simulator;
  await world.ctx.db.query(sql`delete from issue_events`);
  await world.ctx.db.query(sql`delete from issue_event_lists`);
  await forgetValidatorsLike(world.ctx.db, [`/repositories/${repository.id}/issues/events%`]);
  faults.numberedRows = 100;
  await pass(HOUR);
  const [list] = await world.ctx.db.query<{ beginsAt: Date }>(
    sql`select begins_at as "beginsAt" from issue_event_lists`,
  );
  expect(list?.beginsAt).toBeInstanceOf(Date);
  expect(await world.ctx.db.count(sql`select from issue_events`)).toBe(100);
  const [oldest] = plain();
  expect(isPassed(await get(`/issues/${oldest?.number}/events`, UPSTREAM_TOKEN))).toBe(true);
  const recent = newIssue("after all that");
  editIssue(upstream, by(), recent, { state: "closed" });
  await pass(HOUR);
  await expectHeld([`/issues/${recent.number}/events`]);
  faults.numberedRows = Number.POSITIVE_INFINITY;
  await pass(31 * 24 * HOUR);
  await expectHeld([`/issues/${oldest?.number}/events`, "/issues/events?per_page=100&page=2"]);
});

test("a part that is mirrored no more is served no more, and is read again when it is selected again", async () => {
  const { ctx } = world;
  await settleParts({ ...ctx, config: { ...ctx.config, mirror: [] } });
  expect(isPassed(await get("/issues/events", UPSTREAM_TOKEN))).toBe(true);
  await settleParts(ctx);
  expect(isPassed(await get("/issues/events", UPSTREAM_TOKEN))).toBe(true);
  await pass(MINUTE);
  await expectHeld(["/issues/events"]);
});

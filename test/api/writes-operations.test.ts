import { afterAll, beforeAll, expect, test } from "vitest";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { answerSchema, BLANK, problemsOf, readDescription } from "../simulator/openapi.ts";
import { type Answered, askAt, rebased } from "../support/asking.ts";
import { compare } from "../support/comparison.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
let repository: Repository;
beforeAll(async () => {
  world = await openApiWorld({
    issues: 20,
    repositories: 1,
    upstreamTokens: 40,
    // Nothing changes by itself between a write and a look at it.
    mergeableDelayMs: 3_600_000,
  });
  const [first] = world.repositories;
  const found = first && world.upstream.world.repositories.get(first.id);
  if (!found) throw new Error("The generated world has no repository");
  [repo, repository] = [first.fullName, found];
  // The hourly limits of one account are not what this is about.
  Object.assign(world.upstream.quota.limits, { contentPerMinute: Infinity, contentPerHour: Infinity });
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Numbers and ids of what earlier steps made, by the steps' names for them. */
const made: Record<string, number> = {};

interface Step {
  what: string;
  method: string;
  /** Below the repository. */
  path: string;
  body?: object | undefined;
  status: number;
  /** Where upstream shows what was written, below the repository; absent: the answer shows nothing of it. */
  shownAt?: (answer: Answered) => string;
  /** Under this name later steps find the number or id of what was made. */
  makes?: string;
}

const issue = ({ body }: Answered) => `/issues/${body.number}`;
const pull = ({ body }: Answered) => `/pulls/${body.number}`;
const comment = ({ body }: Answered) => `/issues/comments/${body.id}`;
const review = ({ body }: Answered) => `/pulls/${made.pull}/reviews/${body.id}`;
const reviewComment = ({ body }: Answered) => `/pulls/comments/${body.id}`;
const step = (
  what: string,
  request: string,
  body: object | undefined,
  status: number,
  rest: Partial<Step> = {},
): Step => {
  const [method = "", path = ""] = request.split(" ");
  return { what, method, path, body, status, ...rest };
};

const steps: Step[] = [
  step("a label", "POST /labels", { name: "a/b c", color: "FF0000", description: "d" }, 201, {
    shownAt: () => "/labels/a%2Fb%20c",
  }),
  step("a label, renamed", "PATCH /labels/a%2Fb%20c", { new_name: "ü 🎉", color: "00ff00" }, 200, {
    shownAt: () => `/labels/${encodeURIComponent("ü 🎉")}`,
  }),
  step("a milestone", "POST /milestones", { title: "m1", due_on: "2027-01-01T00:00:00Z" }, 201, {
    shownAt: ({ body }) => `/milestones/${body.number}`,
    makes: "first",
  }),
  step("another milestone", "POST /milestones", { title: "m2" }, 201, { makes: "second" }),
  step("a milestone, edited", "PATCH /milestones/{first}", { title: "renamed", state: "closed" }, 200, {
    shownAt: ({ body }) => `/milestones/${body.number}`,
  }),
  step("an issue with everything", "POST /issues", everything(), 201, { shownAt: issue, makes: "issue" }),
  step("an issue, edited", "PATCH /issues/{issue}", { title: "edited", body: null }, 200, { shownAt: issue }),
  step("an issue's milestone, changed", "PATCH /issues/{issue}", { milestone: "{second}" }, 200, { shownAt: issue }),
  step("an issue, closed", "PATCH /issues/{issue}", { state: "closed", state_reason: "not_planned" }, 200, {
    shownAt: issue,
  }),
  step("an issue, reopened", "PATCH /issues/{issue}", { state: "open", labels: [], assignees: [] }, 200, {
    shownAt: issue,
  }),
  step("labels added, one of them new", "POST /issues/{issue}/labels", { labels: ["ü 🎉", "quite new"] }, 200, {
    shownAt: () => "/issues/{issue}/labels",
  }),
  step("labels added that are there", "POST /issues/{issue}/labels", { labels: ["quite new"] }, 200, {
    shownAt: () => "/issues/{issue}/labels",
  }),
  step("labels replaced, as a bare list", "PUT /issues/{issue}/labels", ["bug", "quite new"], 200, {
    shownAt: () => "/issues/{issue}/labels",
  }),
  step("a label taken off", "DELETE /issues/{issue}/labels/quite%20new", undefined, 200, {
    shownAt: () => "/issues/{issue}/labels",
  }),
  step("all labels taken off", "DELETE /issues/{issue}/labels", undefined, 204),
  step("assignees added", "POST /issues/{issue}/assignees", { assignees: ["mirror-owner"] }, 201, { shownAt: issue }),
  step("assignees removed", "DELETE /issues/{issue}/assignees", { assignees: ["mirror-owner"] }, 200, {
    shownAt: issue,
  }),
  step("a lock with a reason", "PUT /issues/{issue}/lock", { lock_reason: "too heated" }, 204),
  step("a lock taken off", "DELETE /issues/{issue}/lock", undefined, 204),
  step("a lock without a body", "PUT /issues/{issue}/lock", undefined, 204),
  step("a comment", "POST /issues/{issue}/comments", { body: "one \u0000 🎉" }, 201, {
    shownAt: comment,
    makes: "comment",
  }),
  step("a comment, edited", "PATCH /issues/comments/{comment}", { body: "two" }, 200, { shownAt: comment }),
  step("a comment, deleted", "DELETE /issues/comments/{comment}", undefined, 204),
  step("a pull request", "POST /pulls", { title: "p", head: "topic", base: "{base}", body: "b" }, 201, {
    shownAt: pull,
    makes: "pull",
  }),
  step("a pull request, edited", "PATCH /pulls/{pull}", { title: "p2", maintainer_can_modify: true }, 200, {
    shownAt: pull,
  }),
  step("a pull request, edited as an issue", "PATCH /issues/{pull}", { title: "p3", milestone: "{second}" }, 200, {
    shownAt: issue,
  }),
  step("labels on a pull request", "POST /issues/{pull}/labels", { labels: ["bug"] }, 200, {
    shownAt: () => "/issues/{pull}/labels",
  }),
  step("a lock on a pull request", "PUT /issues/{pull}/lock", { lock_reason: "spam" }, 204),
  step("a comment on a pull request", "POST /issues/{pull}/comments", { body: "c" }, 201, { shownAt: comment }),
  step("a review with comments", "POST /pulls/{pull}/reviews", reviewWith("COMMENT"), 200, {
    shownAt: review,
    makes: "review",
  }),
  step("a review, edited", "PUT /pulls/{pull}/reviews/{review}", { body: "edited" }, 200, { shownAt: review }),
  step(
    "a review comment",
    "POST /pulls/{pull}/comments",
    { body: "r", path: "a.ts", commit_id: "{head}", line: 3 },
    201,
    {
      shownAt: reviewComment,
      makes: "reviewComment",
    },
  ),
  step("a reply", "POST /pulls/{pull}/comments/{reviewComment}/replies", { body: "reply" }, 201, {
    shownAt: reviewComment,
  }),
  step("a review comment, edited", "PATCH /pulls/comments/{reviewComment}", { body: "r2" }, 200, {
    shownAt: reviewComment,
  }),
  step("a review comment, deleted", "DELETE /pulls/comments/{reviewComment}", undefined, 204),
  step("an approval of another's pull request", "POST /pulls/{foreign}/reviews", { event: "APPROVE" }, 200, {
    makes: "approval",
  }),
  step("an approval, dismissed", "PUT /pulls/{foreign}/reviews/{approval}/dismissals", { message: "no" }, 200),
  step("a pull request, closed", "PATCH /pulls/{pull}", { state: "closed" }, 200, { shownAt: pull }),
  step("a pull request, reopened", "PATCH /pulls/{pull}", { state: "open" }, 200, { shownAt: pull }),
  step("a label, deleted", "DELETE /labels/bug", undefined, 204),
];

function everything(): object {
  return {
    title: "All",
    body: "text",
    labels: ["bug", "ü 🎉", "made by naming it"],
    assignees: ["mirror-owner"],
    milestone: "{first}",
  };
}

function reviewWith(event: string): object {
  return { event, body: "seen", comments: [{ path: "a.ts", line: 1, body: "here" }] };
}

const description = readDescription();
const described = new Set<string>();

/** What is wrong with an answer by the service's own description of the operation. */
function shapeProblems({ method, status }: Pick<Step, "method" | "status">, path: string, answer: Answered): string[] {
  const forms = Object.keys(description.paths).filter((form) =>
    new RegExp(`^${form.replace(/\{[^}]*\}/g, "[^/]+")}$`).test(path),
  );
  // `/pulls/comments/5` is no pull request: the form with the fewest gaps is meant.
  const [form = ""] = forms.sort((a, b) => a.split("{").length - b.split("{").length);
  const operation = description.paths[form]?.[method.toLowerCase()];
  expect(Object.keys(operation?.responses ?? {}), `${method} ${path}`).toContain(String(status));
  described.add(`${method} ${form.replace(/\{[^}]*\}/g, "{}")}`);
  if (status === 204) return [];
  const schema = answerSchema(description, method.toLowerCase(), form, String(status));
  return problemsOf(description, schema, answer.body).filter((problem) => !BLANK.test(problem));
}

/**
 * Differences between mirror and upstream, without the fields that upstream computes a while after a request for them.
 */
async function differences(...ignored: string[]): Promise<string[]> {
  const ofItself = ["mergeable", "rebaseable", "mergeable_state", "merge_commit_sha", ...ignored];
  return (await compare(world.ctx, world.upstream, repo, (_kind, path) => ofItself.includes(path))).differences;
}

/** `{name}` stands for what an earlier step made. */
function filled<T extends object | string | undefined>(value: T): T {
  if (value === undefined) return value;
  const text = JSON.stringify(value).replace(/"?\{(\w+)\}"?/g, (whole, name: string) => {
    if (name === "base") return JSON.stringify(repository.defaultBranch);
    if (name === "head") return JSON.stringify(repository.branches.get("topic"));
    if (made[name] === undefined) throw new Error(`No step has made ${name}`);
    const isWhole = whole.startsWith('"') && whole.endsWith('"');
    return isWhole ? String(made[name]) : whole.replace(`{${name}}`, String(made[name]));
  });
  return JSON.parse(text) as T;
}

test("upstream and mirror begin alike", async () => {
  expect(await differences()).toEqual([]);
  const { world: upstream } = world.upstream;
  pushBranch(upstream, world.userId, repository, "topic");
  await store(world.ctx, world.upstream, "repository", (await world.getUpstream(`/repos/${repo}`)).body);
  const foreign = [...repository.rows.pullsByCreated.ascending()].find(
    (row) => row.authorId !== world.userId && row.state === "open",
  ) as PullIssue | undefined;
  if (!foreign) throw new Error("The generated world has no open pull request of another");
  made.foreign = foreign.number;
});

test.each(steps)("$what: answered as upstream shows it, and the mirror is equal to upstream at once", async (one) => {
  const path = `/repos/${repo}${filled(one.path)}`;
  const body = one.body === undefined ? {} : { body: JSON.stringify(filled(one.body)) };
  const answer = await world.send(one.method, path, body);
  expect(answer.status, answer.text).toBe(one.status);
  expect(shapeProblems(one, path, answer)).toEqual([]);
  if (one.makes) made[one.makes] = answer.body.number ?? answer.body.id;
  if (one.status === 204) expect(answer.text).toBe("");
  if (one.shownAt) {
    const at = `/repos/${repo}${filled(one.shownAt(answer))}`;
    const [theirs, ours] = await Promise.all([world.getUpstream(at), world.get(at)]);
    expect(answer.body).toEqual(rebased(theirs.text, world.upstream.url, world.url));
    expect(ours.body).toEqual(answer.body);
    if (one.status === 201 && one.method === "POST" && !one.path.endsWith("/assignees"))
      expect(answer.headers.get("location")).toBe(`${world.url}${at}`);
  }
  // The answer to a change of labels has no time. Its date may be a second later than the change.
  const isTimed = !/labels(\/|$)|dismissals$/.test(one.path.replace(/^\/labels.*/, ""));
  expect(await differences(...(isTimed ? [] : ["updated_at"]))).toEqual([]);
});

test("a pending review is its author's alone: answered, and shown to nobody until it is submitted", async () => {
  const reviews = `/repos/${repo}/pulls/${made.pull}/reviews`;
  const before = (await world.get(reviews)).body;
  // This mirror writes as one account: one account cannot submit a review that another began.
  const alone = await world.openSibling({ UPSTREAM_TOKEN });
  const send = async (method: string, path: string, sent: object | undefined = undefined) => {
    const answer = await askAt(alone, method, path, {
      token: world.token,
      ...(sent ? { body: JSON.stringify(sent) } : {}),
    });
    expect(shapeProblems({ method, status: answer.status }, path, answer)).toEqual([]);
    return answer;
  };
  const pending = await send("POST", reviews, {
    body: "b",
    comments: [{ path: "a.ts", line: 1, body: "held back" }],
  });
  expect([pending.status, pending.body.state]).toEqual([200, "PENDING"]);
  expect((await world.get(reviews)).body).toEqual(before);
  const submitted = await send("POST", `${reviews}/${pending.body.id}/events`, { event: "COMMENT", body: "now" });
  expect([submitted.status, submitted.body.state]).toEqual([200, "COMMENTED"]);
  expect((await askAt(alone, "GET", reviews, { token: world.token })).body.at(-1)).toEqual(submitted.body);
  expect(await differences()).toEqual([]);
  const again = await send("POST", reviews, {});
  const gone = await send("DELETE", `${reviews}/${again.body.id}`);
  expect([gone.status, gone.body.id]).toEqual([200, again.body.id]);
});

test("what the mirror has not heard of yet can be written to", async () => {
  const { world: upstream } = world.upstream;
  const number = [...repository.rows.issuesByCreated.descending()].find((row) => !row.pull)?.number;
  const target = number === undefined ? undefined : upstream.issue(repository, number);
  if (!target) throw new Error("There is no issue");
  const unheard = createComment(upstream, world.userId, target, "unheard of");
  const edited = await world.send("PATCH", `/repos/${repo}/issues/comments/${unheard.id}`, {
    body: '{"body":"heard"}',
  });
  expect(edited.status).toBe(200);
  expect((await world.get(`/repos/${repo}/issues/comments/${unheard.id}`)).body.body).toBe("heard");
  const gone = await world.send("DELETE", `/repos/${repo}/issues/comments/${unheard.id}`);
  expect(gone.status).toBe(204);
  expect((await world.get(`/repos/${repo}/issues/comments/${unheard.id}`)).status).toBe(404);
});

test("a deleted milestone is off its issues at once; when they were changed, upstream tells later", async () => {
  const path = `/repos/${repo}/milestones/${made.second}`;
  const gone = await world.send("DELETE", path);
  expect(gone.status, gone.text).toBe(204);
  expect(shapeProblems({ method: "DELETE", status: 204 }, path, gone)).toEqual([]);
  expect((await world.get(`/repos/${repo}/issues/${made.pull}`)).body.milestone).toBeNull();
  expect(await differences("updated_at")).toEqual([]);
});

test("every write that is served was among them", () => {
  const served = MIRROR_OPERATIONS.filter(({ route }) => route.method !== "GET").map(
    ({ path, route }) => `${route.method} /repos/{}/{}${path.replace(/:\w+/g, "{}")}`,
  );
  expect(served.filter((one) => !described.has(one)).sort()).toEqual([]);
});

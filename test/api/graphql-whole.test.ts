import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { listWrites } from "../../src/api/record/writes.ts";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const PERSON = "ghp_of-a-person";
let world: ApiWorld;
let repo: string;
/** `repository(owner: …, name: …)` of the mirrored one. */
let at: string;
let number: number;
let issueId: string;

beforeAll(async () => {
  world = await openApiWorld({ issues: 40, repositories: 2, mergeableDelayMs: 0, upstreamTokens: 5 });
  repo = world.repositories.find((one) => !one.private)?.fullName ?? "";
  const [owner = "", name = ""] = repo.split("/");
  at = `repository(owner: "${owner}", name: "${name}")`;
  world.upstream.tokens.create({ token: PERSON, login: "person", repositories: "all" });
  const { world: upstream } = world.upstream;
  const issue = [...upstream.issues.values()].find((one) => upstream.fullName(one.repository) === repo && !one.pull);
  number = issue?.number ?? 0;
  const shown = await ask(`{ ${at} { issue(number: ${number}) { id } } }`, { base: world.upstream.url });
  issueId = shown.body.data.repository.issue.id;
  await ask("{ viewer { login } }");
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  world.upstream.setFaults({});
  world.upstream.meter.reset();
  await world.ctx.db.query(sql`truncate writes, refresh_marks`);
});

interface Asking {
  variables?: object;
  token?: string;
  base?: string;
}
const ask = (query: string, { variables = {}, token = PERSON, base = world.url }: Asking = {}) =>
  askAt(base, "POST", "/graphql", { token, body: JSON.stringify({ query, variables }) });
const requests = () => world.upstream.meter.read().requests;
const side = ({ headers }: Answered) => headers.get("x-tain-passed-through") ?? "mirror";

test("what the mirror has is answered here, and upstream is not asked", async () => {
  const answer = await ask(`{ ${at} { issue(number: ${number}) { title } } }`);
  expect([side(answer), answer.body.data.repository.issue.title]).toEqual(["mirror", expect.any(String)]);
  expect(requests()).toBe(0);
});

/** Each asks for something of the mirror's too. */
const BEYOND: [what: string, query: () => string][] = [
  ["a field that is not mirrored", () => `{ ${at} { descriptionHTML issue(number: ${number}) { title } } }`],
  ["a field that the mirror never knows", () => `{ ${at} { name assignableUsers(first: 1) { totalCount } } }`],
  ["a repository that is not mirrored", () => `{ ${at} { id } other: repository(owner: "no", name: "body") { id } }`],
  ["a node that is not known", () => `{ ${at} { id } node(id: "I_nonsense") { id } }`],
  ["somebody who is not known", () => `{ ${at} { id } user(login: "nobody-of-this-name") { login } }`],
  ["all repositories of somebody", () => `{ viewer { login repositories(first: 2) { totalCount } } }`],
  ["a search beyond what is mirrored", () => `{ search(query: "is:open", type: ISSUE, first: 2) { issueCount } }`],
  [
    "a search in what is not mirrored",
    () => `{ search(query: "repo:${repo} repo:no/body", type: ISSUE, first: 2) { issueCount } }`,
  ],
  ["what only its own schema tells", () => `{ ${at} { id } __type(name: "Issue") { name fields { name } } }`],
];

describe.each(BEYOND)("%s", (_what, query) => {
  test("makes the whole document upstream's", async () => {
    const theirs = await ask(query(), { base: world.upstream.url });
    world.upstream.meter.reset();
    const ours = await ask(query());
    expect(side(ours)).toBe("upstream");
    expect(ours.text).toBe(theirs.text);
    expect(requests()).toBe(1);
    // It is the caller's quota there that is spent, and shown.
    const used = (answer: Answered) => Number(answer.headers.get("x-ratelimit-used"));
    expect(used(ours)).toBeGreaterThanOrEqual(used(theirs));
    expect(ours.headers.get("x-ratelimit-limit")).toBe(theirs.headers.get("x-ratelimit-limit"));
  });

  test("is answered as before to a token of Tain's, and upstream is not asked", async () => {
    const answer = await ask(query(), { token: world.token });
    expect([answer.status, side(answer)]).toEqual([200, "mirror"]);
    expect(requests()).toBe(0);
  });
});

test("a repository that upstream hides from the caller is hidden, though the mirror has it", async () => {
  const hidden = world.repositories.find((one) => one.private)?.fullName ?? "";
  const [owner, name] = hidden.split("/");
  const both = `{ ${at} { name descriptionHTML } repository2: repository(owner: "${owner}", name: "${name}") { id name } }`;
  const token = "ghp_of-an-outsider";
  world.upstream.tokens.create({ token, login: "outsider", repositories: [] });
  for (const query of [both, both.replace("descriptionHTML", "")]) {
    const theirs = await ask(query, { token, base: world.upstream.url });
    const ours = await ask(query, { token });
    expect([side(ours), ours.text]).toEqual(["upstream", theirs.text]);
    expect(ours.body.data.repository2).toBeNull();
  }
});

test("a document that nobody understands is upstream's to refuse, in its words", async () => {
  const query = `{ ${at} { noSuchField } }`;
  const theirs = await ask(query, { base: world.upstream.url });
  const ours = await ask(query);
  expect([side(ours), ours.text]).toEqual(["upstream", theirs.text]);
});

test("a token of Tain's is told that nobody else is asked, behind what is wrong with the document", async () => {
  const query = `{ ${at} { noSuchField } }`;
  const wrong = { message: "Field 'noSuchField' doesn't exist on type 'Repository'" };
  const what = "This mirror does not have all that the document names.";
  const answer = await ask(query, { token: world.token });
  const sentence = `${what} Show a token of the service's own, and this mirror has the service answer the whole document.`;
  expect(answer.body.errors).toMatchObject([wrong, { type: "FORBIDDEN", message: sentence }]);
  const off = await world.openSibling({ PASS_THROUGH: "off" });
  for (const token of [PERSON, world.token]) {
    const { errors } = (await ask(query, { token, base: off })).body;
    const help = "Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.";
    expect(errors).toMatchObject([wrong, { type: "FORBIDDEN", message: `${what} ${help}` }]);
  }
});

describe.each([
  [
    "fields",
    () =>
      `{ ${at} { unknown ${"...f ".repeat(1)} } } fragment f on Repository { ${Array.from({ length: 3_000 }, (_, n) => `a${n}: owner { login }`).join(" ")} ...g } fragment g on Repository { ${Array.from({ length: 9 }, (_, n) => `b${n}: owner { ...h }`).join(" ")} } fragment h on RepositoryOwner { ${Array.from({ length: 2_000 }, (_, n) => `c${n}: login`).join(" ")} }`,
  ],
  [
    "nodes",
    () =>
      `{ ${at} { unknown issues(first: 100) { nodes { comments(first: 100) { nodes { issue { comments(first: 100) { nodes { id } } } } } } } } }`,
  ],
  [
    "searches",
    () =>
      `{ unknown ${Array.from({ length: 11 }, (_, n) => `s${n}: search(query: "x", type: ISSUE) { issueCount }`).join(" ")} }`,
  ],
  ["depth", () => `{ unknown ${at} ${'{ owner { repository(name: "a") '.repeat(31)} { id } ${"} }".repeat(31)} }`],
  [
    "an endless fragment",
    () => `{ unknown ${at} { ...f } } fragment f on Repository { owner { repository(name: "x") { ...f } } }`,
  ],
  ["what is no document", () => "{ unknown "],
])("beyond the bounds: %s", (_what, query) => {
  test("what is beyond the bounds goes nowhere, however much else it asks for", async () => {
    const answer = await ask(query());
    expect([side(answer), requests()]).toEqual(["mirror", 0]);
    expect(answer.body.errors.length).toBeGreaterThan(0);
  });
});

test("a spent quota here keeps documents from going there", async () => {
  const poor = await world.openSibling({ RATE_LIMIT_USER: "1", RATE_LIMIT_GRAPHQL: "1" });
  let last = await ask(`{ ${at} { descriptionHTML } }`, { base: poor });
  for (let asked = 0; asked < 5 && last.body.errors === undefined; asked++)
    last = await ask(`{ ${at} { descriptionHTML } }`, { base: poor });
  expect(last.body.errors).toMatchObject([{ type: "RATE_LIMITED" }]);
});

test("an upstream that is away is told of, and what the mirror has is answered all the same", async () => {
  world.upstream.setFaults({ http: [{ match: "^POST", kind: "reset" }] });
  const answer = await ask(`{ ${at} { descriptionHTML } }`);
  expect([answer.status, answer.body.message]).toEqual([
    502,
    "Upstream had to be asked for this, and it gave no answer that can be read.",
  ]);
  expect((await ask(`{ ${at} { name } }`)).status).toBe(200);
});

test("a list is read to its end on the side on which it was begun", async () => {
  const page = (more: string, after: string) =>
    `{ ${at} { ${more} issues(first: 2${after}) { nodes { number } pageInfo { endCursor } } } }`;
  const list = ({ body }: Answered) => body.data.repository.issues;
  const numbers: number[][] = [];
  for (const [more, expected] of [
    ["", "mirror"],
    ["descriptionHTML", "upstream"],
  ] as const) {
    const first = await ask(page(more, ""));
    const after = `, after: "${list(first).pageInfo.endCursor}"`;
    // The second query leaves out the field that sent the first one to upstream.
    const second = await ask(page("", after));
    expect([side(first), side(second)]).toEqual([expected, expected]);
    numbers.push([first, second].flatMap((answer) => list(answer).nodes.map((one: { number: number }) => one.number)));
  }
  expect(numbers[0]).toEqual(numbers[1]);
});

describe("mutations", () => {
  const see = async (path: string) => (await world.get(`/repos/${repo}${path}`)).body;

  test("one of ours is sent by us, and shown from the mirror", async () => {
    const answer = await ask(`mutation { closeIssue(input: {issueId: "${issueId}"}) { issue { state } } }`);
    expect([side(answer), answer.body.data.closeIssue.issue.state]).toEqual(["mirror", "CLOSED"]);
    await ask(`mutation { reopenIssue(input: {issueId: "${issueId}"}) { issue { state } } }`);
  });

  test.each([0, 1_500])(
    "one that is not ours is forwarded once, and the next read shows it, while replicas lag %i ms",
    async (lagMs) => {
      const made = await world.send("POST", `/repos/${repo}/issues`, {
        body: '{"title":"to be worked on","assignees":["mirror-owner"]}',
      });
      const user = (await world.get("/user")).body.node_id;
      await world.ctx.db.query(sql`truncate writes, refresh_marks`);
      world.upstream.setFaults({ lagMs });
      world.upstream.meter.reset();
      const answer = await ask(
        "mutation($input: RemoveAssigneesFromAssignableInput!) { removeAssigneesFromAssignable(input: $input) { clientMutationId } }",
        { variables: { input: { assignableId: made.body.node_id, assigneeIds: [user], clientMutationId: "c" } } },
      );
      expect([side(answer), answer.body]).toEqual([
        "upstream",
        { data: { removeAssigneesFromAssignable: { clientMutationId: "c" } } },
      ]);
      expect(await see(`/issues/${made.body.number}`)).toMatchObject({ assignees: [] });
      expect(world.upstream.meter.read().routes["POST /graphql"]).toMatchObject({ requests: 1 });
      const marks = await world.ctx.db.query(sql`select kind, key::int as key from refresh_marks`);
      expect(marks).toEqual([{ kind: "issue", key: made.body.number }]);
      expect(await listWrites(world.ctx, { limit: 5 })).toMatchObject([
        {
          route: "mutation removeAssigneesFromAssignable",
          path: "/graphql",
          repository: repo,
          token: fingerprint(PERSON),
          outcome: "answered",
          status: 200,
        },
      ]);
    },
  );

  test("one of ours that asks to be shown what is not mirrored is forwarded, and what it makes is here", async () => {
    const { node_id } = await see("");
    const answer = await ask(
      `mutation { createIssue(input: {repositoryId: "${node_id}", title: "made there"}) { issue { id number bodyHTML } } }`,
    );
    expect(side(answer)).toBe("upstream");
    const { issue } = answer.body.data.createIssue;
    expect(await see(`/issues/${issue.number}`)).toMatchObject({ title: "made there", node_id: issue.id });
  });

  test("one of ours on what is not mirrored is forwarded", async () => {
    const answer = await ask('mutation { closeIssue(input: {issueId: "I_kgDOAAAAAc4AAAAB"}) { issue { state } } }');
    expect([side(answer), answer.body.errors[0].type]).toEqual(["upstream", "NOT_FOUND"]);
  });

  test("none is forwarded for a token of Tain's", async () => {
    const remove = `mutation { removeAssigneesFromAssignable(input: {assignableId: "${issueId}", assigneeIds: []}) { clientMutationId } }`;
    const answer = await ask(remove, { token: world.token });
    expect([side(answer), answer.body.errors.at(-1).type, requests()]).toEqual(["mirror", "FORBIDDEN", 0]);
    expect(await listWrites(world.ctx, { limit: 5 })).toEqual([]);
  });

  test("one whose outcome nobody knows says so, is asked about, and is not sent again", async () => {
    world.upstream.setFaults({ http: [{ match: "^POST", kind: "truncate" }] });
    const remove = `mutation { removeAssigneesFromAssignable(input: {assignableId: "${issueId}", assigneeIds: []}) { clientMutationId } }`;
    const answer = await ask(remove);
    expect([answer.status, answer.body.message]).toEqual([
      502,
      expect.stringContaining("is not known; it is not sent again."),
    ]);
    world.upstream.setFaults({});
    expect(await world.ctx.db.query(sql`select kind from refresh_marks`)).toEqual([{ kind: "issue" }]);
  });

  test("one that names resources of several kinds, in two repositories, has each of them asked about", async () => {
    interface Comment {
      id: number;
      node_id: string;
      issue_url: string;
      html_url: string;
    }
    const numberIn = (url: string) => Number(url.split("/").at(-1));
    const own = await see("");
    const [inline] = await see("/pulls/comments");
    const reviewed = numberIn(inline.pull_request_url);
    const [review] = await see(`/pulls/${reviewed}/reviews`);
    const [label] = await see("/labels");
    const [milestone] = await see("/milestones");
    const comments: Comment[] = await see("/issues/comments?per_page=100");
    const others = comments.filter(({ issue_url }) => ![number, reviewed].includes(numberIn(issue_url)));
    const onIssue = others.find(({ html_url }) => html_url.includes("/issues/"));
    const onPull = others.find(({ html_url }) => html_url.includes("/pull/"));
    const second = world.repositories.find(({ fullName }) => fullName !== repo);
    const [pull] = (await world.get(`/repos/${second?.fullName}/pulls`)).body;
    const ids = [own, inline, review, label, milestone, onIssue, onPull, pull].map(({ node_id }) => node_id);
    world.upstream.setFaults({ http: [{ match: "^POST", kind: "truncate" }] });
    await ask(
      `mutation($ids: [ID!]!) { removeAssigneesFromAssignable(input: {assignableId: "${issueId}", assigneeIds: $ids}) { clientMutationId } }`,
      { variables: { ids } },
    );
    const marks = await world.ctx.db.query<{ mark: string }>(
      sql`select concat_ws(' ', kind, nullif(repository_id, 0), key) as mark from refresh_marks`,
    );
    const commented = [onIssue, onPull].map((one) => numberIn(one?.issue_url ?? ""));
    expect(marks.map(({ mark }) => mark).toSorted()).toEqual(
      [
        `repository ${own.id}`,
        ...[number, reviewed, ...commented].map((key) => `issue ${own.id} ${key}`),
        ...[reviewed, commented[1]].map((key) => `pull_request ${own.id} ${key}`),
        ...[onIssue, onPull].map((one) => `issue_comment ${own.id} ${one?.id}`),
        `review_comment ${own.id} ${inline.id}`,
        `review ${own.id} ${review.id}`,
        `label ${own.id} ${label.id}`,
        `milestone ${own.id} ${milestone.id}`,
        ...["issue", "pull_request"].map((kind) => `${kind} ${second?.id} ${pull.number}`),
      ].toSorted(),
    );
  });

  test("one that took effect is answered so, though Postgres cannot say afterwards what it touched", async () => {
    const { db } = world.ctx;
    // The issues become unreadable once the write is recorded, which is before it is sent.
    await db.query(sql`create function hide_issues() returns trigger language plpgsql security definer
      as $$ begin alter table issues rename to hidden_issues; return null; end $$`);
    await db.query(sql`create trigger hide_issues after insert on writes execute function hide_issues()`);
    try {
      const answer = await ask(
        `mutation { removeAssigneesFromAssignable(input: {assignableId: "${issueId}", assigneeIds: []}) { clientMutationId } }`,
      );
      expect([answer.status, side(answer), answer.body]).toEqual([
        200,
        "upstream",
        expect.objectContaining({ data: { removeAssigneesFromAssignable: { clientMutationId: null } } }),
      ]);
      expect(answer.body).not.toHaveProperty("errors");
    } finally {
      await db.query(sql`drop trigger hide_issues on writes`);
      await db.query(sql`alter table hidden_issues rename to issues`);
    }
    expect(await db.query(sql`select kind from refresh_marks`)).toEqual([{ kind: "issue" }]);
    expect(await listWrites(world.ctx, { limit: 5 })).toMatchObject([{ outcome: "answered", status: 200 }]);
  });
});

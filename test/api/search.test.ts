/**
 * Searches: each finds exactly what a plain filter over upstream's truth finds, and nothing that its caller may not
 * see.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Issue } from "../../src/simulator/world/records.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const SEARCHES = Number(process.env.SEARCH_SEEDS ?? 120);

let world: ApiWorld;
let issues: Issue[];
let stems: Map<string, string>;
beforeAll(async () => {
  world = await openApiWorld({
    issues: 150,
    repositories: 3,
    env: {
      RATE_LIMIT_SEARCH_USER: "0",
      RATE_LIMIT_SEARCH_ANONYMOUS: "0",
      RATE_LIMIT_ANONYMOUS: "0",
      RATE_LIMIT_USER: "0",
    },
  });
  const mirrored = new Set(world.repositories.map(({ id }) => id));
  issues = [...world.upstream.world.issues.values()].filter(
    ({ deleted, repository }) => !deleted && mirrored.has(repository.id),
  );
  const words = [...new Set(issues.flatMap((issue) => texts(issue).flatMap(({ text }) => wordsOf(text))))];
  const rows = await world.ctx.db.query<{ word: string; stem: string }>(
    sql`select w.word, coalesce((ts_lexize('word_stems', w.word))[1], w.word) as stem from unnest(${words}::text[]) w(word)`,
  );
  stems = new Map(rows.map(({ word, stem }) => [word, stem]));
});
afterAll(() => world?.[Symbol.asyncDispose]());

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{Nd}]+/gu) ?? [];
}

function texts(issue: Issue): { place: string; text: string }[] {
  return [
    { place: "title", text: issue.title },
    { place: "body", text: issue.body ?? "" },
    ...issue.thread.filter(({ deleted }) => !deleted).map(({ body }) => ({ place: "comments", text: body })),
  ];
}

function has(issue: Issue, word: string, place?: string): boolean {
  const wanted = stems.get(word) ?? word;
  return texts(issue).some(
    (one) => (!place || one.place === place) && wordsOf(one.text).some((other) => stems.get(other) === wanted),
  );
}

/** The same random numbers for the same seed. */
function chooser(seed: number) {
  let state = seed * 2_654_435_761;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
  return { next, pick: <T>(of: readonly T[]): T => of[Math.floor(next() * of.length)] as T };
}

type Condition = [query: string, matches: (issue: Issue) => boolean];
const quoted = (text: string) => (/^[\w-]+$/.test(text) ? text : `"${text}"`);
const day = (seconds: number) => new Date(seconds * 1_000).toISOString().slice(0, 10);
const startOf = (date: string) => Date.parse(date) / 1_000;

/** One condition that some issue of the world meets, in upstream's words and as a plain filter. */
function condition(choose: ReturnType<typeof chooser>): Condition {
  const truth = world.upstream.world;
  const some = choose.pick(issues);
  const people = issues
    .flatMap(({ authorId }) => (authorId === null ? [] : [truth.users.get(authorId)?.login ?? ""]))
    .filter(Boolean);
  const login = choose.pick(people);
  const id = truth.userByLogin(login)?.id;
  const date = day(some.createdAt);
  // In capitals, `and` and `not` are operators.
  const words = wordsOf(`${some.title} ${some.thread[0]?.body ?? ""}`).filter((one) =>
    /^(?!and$|not$)[a-z]{3,}$/.test(one),
  );
  const word = words.length > 0 ? choose.pick(words) : "crash";
  const label =
    truth.labels.get(choose.pick(some.labelIds.length > 0 ? some.labelIds : [...truth.labels.keys()]))?.name ?? "bug";
  const milestone = [...truth.milestones.values()].find((one) => one.id === some.milestoneId)?.title;
  const merged = (issue: Issue) => issue.pull?.mergedAt != null;
  const commented = (issue: Issue) => issue.thread.some((comment) => !comment.deleted && comment.authorId === id);
  const mention = new RegExp(`(^|[^\\w/@-])@${login}(?![\\w-])`, "i");
  const mentioned = (issue: Issue) => texts(issue).some(({ place, text }) => place !== "title" && mention.test(text));
  const options: Condition[] = [
    [choose.pick(["is:open", "state:OPEN"]), (issue) => issue.state === "open"],
    ["is:closed", (issue) => issue.state === "closed"],
    [choose.pick(["is:pr", "type:pr"]), (issue) => issue.pull !== null],
    [choose.pick(["is:issue", "type:issue"]), (issue) => issue.pull === null],
    ["is:merged", merged],
    ["is:unmerged", (issue) => issue.pull !== null && !merged(issue)],
    ["draft:true", (issue) => issue.pull?.draft === true],
    ["is:locked", (issue) => issue.locked],
    ["is:private", (issue) => issue.repository.visibility !== "public"],
    ["is:public", (issue) => issue.repository.visibility === "public"],
    [`repo:${truth.fullName(some.repository).toUpperCase()}`, (issue) => issue.repository === some.repository],
    [
      `org:${truth.fullName(some.repository).split("/")[0]}`,
      (issue) => issue.repository.ownerId === some.repository.ownerId,
    ],
    [`author:${login.toUpperCase()}`, (issue) => issue.authorId === id],
    [`assignee:${login}`, (issue) => id !== undefined && issue.assigneeIds.includes(id)],
    [`commenter:${login}`, commented],
    [`mentions:${login}`, mentioned],
    [
      `involves:${login}`,
      (issue) =>
        issue.authorId === id ||
        (id !== undefined && issue.assigneeIds.includes(id)) ||
        commented(issue) ||
        mentioned(issue),
    ],
    [
      `label:${quoted(label)},"no such label"`,
      (issue) => issue.labelIds.some((one) => truth.labels.get(one)?.name.toLowerCase() === label.toLowerCase()),
    ],
    ["no:label", (issue) => issue.labelIds.length === 0],
    ["no:assignee", (issue) => issue.assigneeIds.length === 0],
    ["no:milestone", (issue) => issue.milestoneId === null],
    ...(milestone === undefined
      ? []
      : [
          [
            `milestone:"${milestone}"`,
            (issue: Issue) => truth.milestones.get(issue.milestoneId ?? 0)?.title === milestone,
          ] as Condition,
        ]),
    [`created:>=${date}`, (issue) => issue.createdAt >= startOf(date)],
    [`created:${date}`, (issue) => day(issue.createdAt) === date],
    [`updated:*..${date}`, (issue) => issue.updatedAt < startOf(date) + 86_400],
    [`closed:<${date}`, (issue) => issue.closedAt !== null && issue.closedAt < startOf(date)],
    [`merged:>${date}`, (issue) => (issue.pull?.mergedAt ?? 0) >= startOf(date) + 86_400],
    [`created:<=${new Date(some.createdAt * 1_000).toISOString()}`, (issue) => issue.createdAt <= some.createdAt],
    ["comments:>2", (issue) => issue.thread.length + issue.commentsBeyond > 2],
    ["comments:1..3", (issue) => issue.thread.length >= 1 && issue.thread.length <= 3],
    ["reason:completed", (issue) => issue.stateReason === "completed"],
    [
      `head:${some.pull?.head.ref ?? "x"}`,
      (issue) => issue.pull?.head.ref.startsWith(some.pull?.head.ref ?? "x") === true,
    ],
    [`base:${some.pull?.base.ref ?? "main"}`, (issue) => issue.pull?.base.ref === (some.pull?.base.ref ?? "main")],
    [word, (issue) => has(issue, word)],
    [word.toUpperCase(), (issue) => has(issue, word)],
  ];
  return choose.pick(options);
}

function compound(choose: ReturnType<typeof chooser>): Condition {
  const parts = Array.from({ length: 1 + Math.floor(choose.next() * 3) }, (): Condition => {
    const [query, matches] = condition(choose);
    if (choose.next() < 0.2) return [`-${query}`, (issue) => !matches(issue)];
    if (choose.next() > 0.15) return [query, matches];
    const [other, otherwise] = condition(choose);
    return [`(${query} OR ${other})`, (issue) => matches(issue) || otherwise(issue)];
  });
  // Repositories and owners side by side widen each other, so one of them is enough here.
  const isScope = ([query]: Condition) => /^(repo|org):/.test(query);
  const kept = parts.filter((part, at) => !isScope(part) || parts.findIndex(isScope) === at);
  return [kept.map(([query]) => query).join(" "), (issue) => kept.every(([, matches]) => matches(issue))];
}

async function searched(query: string, token?: string | null): Promise<{ total: number; ids: number[] }> {
  const ids: number[] = [];
  let total = 0;
  for (let page = 1; page === 1 || ids.length < total; page++) {
    const answer = await world.get(`/search/issues?per_page=100&page=${page}&q=${encodeURIComponent(query)}`, {
      ...(token === undefined ? {} : { token }),
    });
    expect(answer.status, `${query}: ${answer.text.slice(0, 300)}`).toBe(200);
    total = answer.body.total_count;
    if (answer.body.items.length === 0) break;
    ids.push(...answer.body.items.map(({ id }: { id: number }) => id));
  }
  return { total, ids };
}

test("every search finds exactly what a plain filter over upstream's truth finds", async () => {
  let found = 0;
  for (let seed = 1; seed <= SEARCHES; seed++) {
    const [query, matches] = compound(chooser(seed));
    const expected = issues.filter(matches).map(({ id }) => id);
    const { total, ids } = await searched(query);
    expect(
      ids.toSorted((a, b) => a - b),
      `seed ${seed}: ${query}`,
    ).toEqual(expected.toSorted((a, b) => a - b));
    expect(total).toBe(expected.length);
    found += total;
  }
  // A search that finds nothing proves little.
  expect(found).toBeGreaterThan(SEARCHES * 5);
});

test("GraphQL finds the same, in the same order, from both ends", async () => {
  const { ids } = await searched("is:open sort:updated-asc");
  const query = `query($q: String!, $after: String, $before: String, $first: Int, $last: Int) {
    search(type: ISSUE, query: $q, first: $first, after: $after, last: $last, before: $before) { issueCount repositoryCount
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      nodes { __typename ... on Issue { number repository { nameWithOwner } } ... on PullRequest { number repository { nameWithOwner } } } } }`;
  const ask = async (variables: object) =>
    (
      await world.send("POST", "/graphql", {
        body: JSON.stringify({ query, variables: { q: "is:open sort:updated-asc", ...variables } }),
      })
    ).body.data.search;
  const name = (issue: Issue) => `${world.upstream.world.fullName(issue.repository)}#${issue.number}`;
  const byId = new Map(issues.map((issue) => [issue.id, name(issue)]));
  const shown = (nodes: { number: number; repository: { nameWithOwner: string } }[]) =>
    nodes.map(({ number, repository }) => `${repository.nameWithOwner}#${number}`);
  const forward: string[] = [];
  for (let after: string | null = null, more = true; more; ) {
    const page: {
      issueCount: number;
      repositoryCount: number;
      nodes: [];
      pageInfo: { hasNextPage: boolean; endCursor: string };
    } = await ask({ first: 40, after });
    expect(page).toMatchObject({ issueCount: ids.length, repositoryCount: 0 });
    forward.push(...shown(page.nodes));
    after = page.pageInfo.endCursor;
    more = page.pageInfo.hasNextPage;
  }
  expect(forward).toEqual(ids.map((id) => byId.get(id)));
  // Without `before`, `last` is only the size of a page: so `gh issue list --search` asks for the best results.
  const best = await ask({ last: 3 });
  expect(shown(best.nodes)).toEqual(forward.slice(0, 3));
  const next = await ask({ last: 3, after: best.pageInfo.endCursor });
  expect(shown(next.nodes)).toEqual(forward.slice(3, 6));
  expect(next.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: true });
  expect(shown((await ask({ last: 2, before: next.pageInfo.startCursor })).nodes)).toEqual(forward.slice(1, 3));
  const none = await ask({ q: "repo:no/such", first: 3 });
  expect(none).toMatchObject({ issueCount: 0, nodes: [] });
});

describe("who may not see a repository", () => {
  test("does not find it, and its name is as unknown as one that is not there", async () => {
    const hidden = world.repositories.find((one) => one.private);
    const isPublic = issues.filter(({ repository }) => repository.visibility === "public");
    const { total, ids } = await searched("is:open", null);
    const open = isPublic.filter(({ state }) => state === "open").map(({ id }) => id);
    expect(ids.toSorted()).toEqual(open.toSorted());
    expect(total).toBe(open.length);
    const unknown = await world.get("/search/issues?q=repo:no/such", { token: null });
    expect(unknown.status).toBe(422);
    expect(unknown.body).toEqual({
      message: "Validation Failed",
      errors: [
        {
          message:
            "The listed users and repositories cannot be searched either because the resources do not exist or you do not have permission to view them.",
          resource: "Search",
          field: "q",
          code: "invalid",
        },
      ],
      documentation_url: "https://docs.github.com/v3/search/",
      status: "422",
    });
    if (!hidden) return;
    const seen = await world.get(`/search/issues?q=repo:${hidden.fullName}`, { token: null });
    expect([seen.status, seen.text]).toEqual([unknown.status, unknown.text]);
  });
});

describe("a search that cannot be made is refused in words", () => {
  test.each([
    ["", { resource: "Search", field: "q", code: "missing" }],
    ["x".repeat(257), { message: "The search is longer than 256 characters." }],
    ["a OR b OR c OR d OR e OR f OR g", { message: "More than five AND / OR / NOT operators were used." }],
    ["created:yesterday", { message: expect.stringContaining('"yesterday" is not a recognized date/time format.') }],
    ["comments:many", { message: '"many" is not a number.' }],
    ["is:nonsense", { message: expect.stringContaining('"is:" takes') }],
    ["linked:pr", { message: expect.stringContaining("not mirrored") }],
    ["x in:readme", { message: expect.stringContaining('"in:readme"') }],
    ["user:nobody-of-this-name", { code: "invalid", message: expect.stringContaining("cannot be searched") }],
  ])("%s", async (query, fault) => {
    const answer = await world.get(`/search/issues?q=${encodeURIComponent(query)}`);
    expect(answer.status).toBe(422);
    expect(answer.body.errors).toEqual([expect.objectContaining({ resource: "Search", field: "q", ...fault })]);
    expect(answer.body.documentation_url).toBe(`https://docs.github.com/v3/search${query === "" ? "" : "/"}`);
  });

  test("pages beyond a thousand results", async () => {
    expect((await world.get("/search/issues?q=is:open&per_page=30&page=34")).status).toBe(200);
    const beyond = await world.get("/search/issues?q=is:open&per_page=30&page=35");
    expect(beyond.body).toMatchObject({ message: "Only the first 1000 search results are available", status: "422" });
  });
});

test.each([
  "a\0b",
  "\ud83d",
  "'; drop table issues; --",
  "%_\\",
  "a:b:c",
  "((((",
  '"',
  "label:",
  "-",
  "NOT",
  "OR",
  "constructor:x",
  "repo OR",
  "is:open OR",
  'label:"\0"',
  "author:%",
  "a & | ! <-> b:*",
  "👍 crash",
])("hostile text is searched for like any other: %j", async (query) => {
  const answer = await world.get(`/search/issues?q=${encodeURIComponent(query.toWellFormed())}`);
  expect(answer.status, answer.text).toBe(200);
});

test("an answer has a count, a page, neighbours and no validators, and spends searches", async () => {
  const limited = await world.openSibling({ RATE_LIMIT_SEARCH_USER: "2", RATE_LIMIT_USER: "5000" });
  const ask = (path: string) =>
    fetch(limited + path, { headers: { authorization: `Bearer ${world.token}`, "user-agent": "test" } });
  const answer = await ask("/search/issues?q=is:open&per_page=2");
  const body = (await answer.json()) as { items: { score: number; user: object; created_at: string }[] };
  expect(body).toMatchObject({ total_count: expect.any(Number), incomplete_results: true });
  expect(body.items[0]).toMatchObject({ score: 1, user: expect.any(Object) });
  const times = body.items.map(({ created_at }) => created_at);
  expect(times).toEqual(times.toSorted().reverse());
  expect(answer.headers.get("link")).toContain('rel="next"');
  expect(answer.headers.get("etag")).toBeNull();
  expect(answer.headers.get("cache-control")).toBe("no-cache");
  expect(answer.headers.get("x-ratelimit-resource")).toBe("search");
  expect(answer.headers.get("x-ratelimit-limit")).toBe("2");
  await ask("/search/repositories?q=fork:true");
  const spent = await ask("/search/issues?q=is:open");
  expect([spent.status, spent.headers.get("x-ratelimit-remaining")]).toEqual([403, "0"]);
  const { resources } = (await (await ask("/rate_limit")).json()) as {
    resources: Record<string, { used: number; reset: number }>;
  };
  expect(resources.search).toMatchObject({ limit: 2, used: 2, remaining: 0 });
  expect((resources.search?.reset ?? 0) - Date.now() / 1_000).toBeLessThanOrEqual(61);
  expect(resources.core?.used).toBe(0);
});

test("repositories and labels are found by words and qualifiers", async () => {
  const truth = world.upstream.world;
  const [first] = world.repositories;
  const all = (await world.get("/search/repositories?q=fork:true")).body;
  expect(all.items.map(({ id }: { id: number }) => id).toSorted()).toEqual(
    world.repositories.map(({ id }) => id).toSorted(),
  );
  const owner = first?.fullName.split("/")[0];
  const owned = (await world.get(`/search/repositories?q=user:${owner}&sort=stars&order=asc`)).body.items;
  const stars = owned.map(({ stargazers_count }: { stargazers_count: number }) => stargazers_count);
  expect(stars).toEqual(stars.toSorted((a: number, b: number) => a - b));
  const named = (await world.get(`/search/repositories?q=${first?.fullName.split("/")[1]} in:name`)).body.items;
  expect(named.map(({ id }: { id: number }) => id)).toContain(first?.id);
  const open = (await world.get("/search/repositories?q=is:public", { token: null })).body.items;
  expect(open.map(({ id }: { id: number }) => id).toSorted()).toEqual(
    world.repositories
      .filter((one) => !one.private && truth.repositories.get(one.id)?.fork === false)
      .map(({ id }) => id)
      .toSorted(),
  );
  const label = [...truth.labels.values()].find(({ repository }) => repository.id === first?.id);
  const labels = (
    await world.get(`/search/labels?repository_id=${first?.id}&q=${encodeURIComponent(label?.name ?? "")}`)
  ).body;
  expect(labels.items.map(({ id }: { id: number }) => id)).toContain(label?.id);
  expect((await world.get("/search/labels?repository_id=1&q=bug")).status).toBe(404);
});

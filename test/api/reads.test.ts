import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rebased } from "../support/asking.ts";
import { OWNER } from "../support/config.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let busiest: string;
let busiestId: number;
beforeAll(async () => {
  world = await openApiWorld();
  const [first] = world.repositories;
  if (!first) throw new Error("The generated world has no repository");
  busiest = first.fullName;
  busiestId = first.id;
});
afterAll(() => world[Symbol.asyncDispose]());

const below = (path: string) => `/repos/${busiest}${path}`;

describe("a read answers what upstream answers, with the mirror's addresses", () => {
  test.each([
    "",
    "/issues",
    "/issues?state=all&per_page=100",
    "/issues?state=closed&sort=updated&direction=asc",
    "/issues?sort=comments&state=all",
    "/issues?assignee=none&state=all&per_page=100",
    "/issues?assignee=*&state=all",
    "/issues?milestone=*&state=all",
    "/issues?milestone=none&state=all",
    "/issues?milestone=1&state=all",
    "/issues?since=2025-01-01T00:00:00Z&state=all&per_page=50",
    "/issues?type=none&state=all",
    "/issues?type=*",
    "/issues?per_page=0",
    "/issues?per_page=ten",
    "/issues?per_page=7&page=2",
    "/pulls",
    "/pulls?state=all&per_page=5&page=2",
    "/pulls?state=closed&sort=updated",
    "/pulls?state=all&sort=popularity&direction=desc",
    "/pulls?base=main&state=all",
    "/pulls?head=nobody:nothing",
    "/labels?per_page=100",
    "/milestones?state=all",
    "/issues/comments",
    "/issues/comments?sort=updated&direction=desc",
    "/issues/comments?per_page=3&page=3",
    "/pulls/comments",
    "/pulls/comments?sort=created&direction=desc",
  ])("%s", async (path) => {
    const [ours, theirs] = await Promise.all([world.get(below(path)), world.getUpstream(below(path))]);
    expect(ours.status).toBe(200);
    const expected = rebased(theirs.text, world.upstream.url, world.url) as unknown[];
    if (path.startsWith("/labels")) {
      const byName = (a: { name: string }, b: { name: string }) =>
        a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1;
      expect(ours.body).toEqual((expected as { name: string }[]).sort(byName));
    } else expect(ours.body).toEqual(expected);
    expect(rels(ours.headers.get("link"))).toEqual(rels(theirs.headers.get("link")));
  });
});

test("issues by label, creator, assignee and mention", async () => {
  const { body: all } = await world.getUpstream(below("/issues?state=all&per_page=100"));
  type Row = {
    number: number;
    user: { login: string } | null;
    labels: { name: string }[];
    assignees: { login: string }[];
  };
  const several = (all as Row[]).find((row) => row.labels.length > 1) as Row;
  const [one, two] = several.labels.map(({ name }) => name) as [string, string];
  const assigned = (all as Row[]).find((row) => row.assignees.length > 0) as Row;
  const queries: Record<string, string>[] = [
    { labels: one },
    { labels: one.toUpperCase() },
    { labels: `${one},${two}` },
    { labels: "no such label" },
    { creator: several.user?.login ?? "" },
    { creator: "nobody-at-all" },
    { assignee: assigned.assignees[0]?.login ?? "" },
    { assignee: "nobody-at-all" },
    { labels: one, creator: several.user?.login ?? "", sort: "updated" },
  ];
  for (const query of queries) {
    const path = below(`/issues?${new URLSearchParams({ ...query, state: "all", per_page: "100" })}`);
    const [ours, theirs] = [await world.get(path), await world.getUpstream(path)];
    expect(ours.body, path).toEqual(rebased(theirs.text, world.upstream.url, world.url));
  }
  const mentioned = await world.get(below("/issues?mentioned=nobody-at-all&state=all"));
  expect(mentioned.body).toEqual([]);
  const text = (all as { body: string | null }[])
    .map(({ body }) => /(?:^|\s)@([a-z][a-z-]+[a-z])\b/.exec(body ?? "")?.[1])
    .find(Boolean);
  expect(text, "the generated world mentions a user").toBeDefined();
  const found = await world.get(below(`/issues?mentioned=${text?.toUpperCase()}&state=all&per_page=100`));
  expect(found.body.length).toBeGreaterThan(0);
});

describe("every single resource equals upstream's", () => {
  test.each([
    ["issues", "/issues?state=all&per_page=100", (row: { number: number }) => `/issues/${row.number}`],
    ["pulls", "/pulls?state=all&per_page=100", (row: { number: number }) => `/pulls/${row.number}`],
    ["labels", "/labels?per_page=100", (row: { name: string }) => `/labels/${encodeURIComponent(row.name)}`],
    ["milestones", "/milestones?state=all", (row: { number: number }) => `/milestones/${row.number}`],
    ["comments", "/issues/comments?per_page=20", (row: { id: number }) => `/issues/comments/${row.id}`],
    ["review comments", "/pulls/comments?per_page=20", (row: { id: number }) => `/pulls/comments/${row.id}`],
  ] as [string, string, (row: never) => string][])("%s", async (_kind, list, path) => {
    const { body } = await world.getUpstream(below(list));
    expect(body.length).toBeGreaterThan(0);
    for (const row of (body as never[]).slice(0, 25)) {
      const [ours, theirs] = [await world.get(below(path(row))), await world.getUpstream(below(path(row)))];
      expect(ours.status).toBe(200);
      expect(ours.body).toEqual(withoutMergeability(rebased(theirs.text, world.upstream.url, world.url), ours.body));
    }
  });

  test("what belongs to an issue or a pull request", async () => {
    const { body } = await world.getUpstream(below("/pulls?state=all&per_page=30"));
    for (const { number } of body as { number: number }[]) {
      for (const part of [
        `/issues/${number}/comments`,
        `/pulls/${number}/reviews`,
        `/pulls/${number}/comments`,
        `/issues/${number}/labels`,
      ]) {
        const [ours, theirs] = [await world.get(below(part)), await world.getUpstream(below(part))];
        expect(ours.body, part).toEqual(rebased(theirs.text, world.upstream.url, world.url));
      }
      const reviews = await world.get(below(`/pulls/${number}/reviews`));
      for (const review of reviews.body) {
        expect((await world.get(below(`/pulls/${number}/reviews/${review.id}`))).body).toEqual(review);
        expect((await world.get(below(`/pulls/${number + 100_000}/reviews/${review.id}`))).status).toBe(404);
      }
    }
  });
});

/** Upstream computes it when a pull request is first looked at, and so changes its mind between two looks. */
function withoutMergeability(theirs: unknown, ours: Record<string, unknown>): unknown {
  if (!("mergeable" in ours)) return theirs;
  const { mergeable, mergeable_state, rebaseable } = ours;
  return { ...(theirs as object), mergeable, mergeable_state, rebaseable };
}

function rels(link: string | null): string[] {
  return [...(link ?? "").matchAll(/rel="(\w+)"/g)].map(([, rel]) => rel as string);
}

test("user and their repositories", async () => {
  // As anyone sees them: what upstream shows of them to themselves alone is not for those who have one of our tokens.
  const [ours, theirs] = await Promise.all([world.get("/user"), world.getUpstream(`/users/${OWNER}`)]);
  expect(ours.body).toEqual(rebased(theirs.text, world.upstream.url, world.url));
  for (const query of [
    "",
    "?sort=updated&per_page=1",
    "?sort=created&direction=asc",
    "?visibility=public",
    "?type=private",
    "?type=owner",
    "?since=2020-01-01T00:00:00Z&sort=pushed",
  ]) {
    const list = await world.get(`/user/repos${query}`);
    expect(list.status, query).toBe(200);
    const shown = (list.body as { full_name: string }[]).map((row) => row.full_name);
    const all = await world.getUpstream(
      `/user/repos?per_page=100${query.replace("?", "&").replace("&per_page=1", "")}`,
    );
    const mirrored = new Set(world.repositories.map((row) => row.fullName));
    const expected = (all.body as { full_name: string }[]).filter((row) => mirrored.has(row.full_name));
    expect(shown, query).toEqual(expected.map((row) => row.full_name).slice(0, query.includes("per_page=1") ? 1 : 100));
    const bodies = rebased(JSON.stringify(expected), world.upstream.url, world.url) as unknown[];
    expect(list.body, query).toEqual(bodies.slice(0, shown.length));
  }
  const both = await world.get("/user/repos?type=all&visibility=all");
  expect(both.status).toBe(422);
  expect(both.body.message).toBe("If you specify visibility or affiliation, you cannot specify type.");
});

describe("paging meets every row once", () => {
  test.each(["created", "updated", "comments"])(
    "issues by cursor, sorted by %s, both directions and back again",
    async (sort) => {
      const all = await world.getUpstream(below("/issues?state=all&per_page=100"));
      const more = await world.getUpstream(below("/issues?state=all&per_page=100&page=2"));
      const numbers = [...all.body, ...more.body].map((row: { number: number }) => row.number).sort((a, b) => a - b);
      for (const direction of ["asc", "desc"]) {
        const pages: number[][] = [];
        let next: string | null =
          `${world.url}${below(`/issues?state=all&sort=${sort}&direction=${direction}&per_page=9`)}`;
        let last = "";
        while (next) {
          const page = await world.get(next.slice(world.url.length));
          expect(page.status).toBe(200);
          pages.push(page.body.map((row: { number: number }) => row.number));
          const link = page.headers.get("link");
          last = linked(link, "prev") ?? "";
          next = linked(link, "next");
          if (next) expect(new URL(next).pathname).toBe(`/repositories/${busiestId}/issues`);
          expect(rels(link)).not.toContain("last");
        }
        expect(pages.flat().sort((a, b) => a - b)).toEqual(numbers);
        const back: number[][] = [];
        for (let previous: string | null = last; previous; ) {
          const page = await world.get(previous.slice(world.url.length));
          back.unshift(page.body.map((row: { number: number }) => row.number));
          previous = linked(page.headers.get("link"), "prev");
        }
        expect(back).toEqual(pages.slice(0, -1));
      }
    },
  );

  test("issues by cursor while they change and new ones come", async () => {
    const { body: before } = await world.getUpstream(below("/issues?state=all&per_page=100"));
    const [repository] = world.repositories;
    const upstream = world.upstream.world.repositories.get(busiestId);
    const html = `https://github.com/${busiest}`;
    const seen: number[] = [];
    let next: string | null = `${world.url}${below("/issues?state=all&per_page=6")}`;
    for (let turn = 0; next; turn++) {
      const page = await world.get(next.slice(world.url.length));
      seen.push(...page.body.map((row: { number: number }) => row.number));
      next = linked(page.headers.get("link"), "next");
      const victim = before[(turn * 17) % before.length];
      const edited = {
        ...victim,
        title: `edited ${turn}`,
        state: turn % 2 ? "closed" : "open",
        updated_at: new Date(Date.now() + turn * 1_000).toISOString().replace(/\.\d+/, ""),
      };
      await store(world.ctx, world.upstream, "issue", edited, {
        id: busiestId,
        fullName: repository?.fullName ?? "",
        htmlUrl: html,
      });
      await world.send("POST", below("/issues"), { body: JSON.stringify({ title: `new ${turn}` }) });
    }
    expect(upstream?.rows.issuesByCreated.size).toBeGreaterThan(before.length);
    for (const { number } of before as { number: number }[])
      expect(seen.filter((one) => one === number)).toEqual([number]);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test("numbered pages by their Link", async () => {
    for (const list of ["/pulls?state=all&per_page=4", "/labels?per_page=3", "/issues/comments?per_page=11"]) {
      const seen: number[] = [];
      let next: string | null = `${world.url}${below(list)}`;
      while (next) {
        const page = await world.get(next.slice(world.url.length));
        seen.push(...page.body.map((row: { id: number }) => row.id));
        next = linked(page.headers.get("link"), "next");
      }
      expect(new Set(seen).size).toBe(seen.length);
      const whole = [];
      for (let page = 1; page < 9; page++)
        whole.push(
          ...(await world.getUpstream(below(`${list.replace(/per_page=\d+/, "per_page=100")}&page=${page}`))).body,
        );
      expect(seen.length).toBe(whole.length);
    }
  });

  test("a deep page without a cursor is refused as the service refuses it", async () => {
    const { status, body } = await world.get(below("/issues?per_page=100&page=100"));
    expect(status).toBe(422);
    expect(body).toEqual({
      message:
        "Pagination with the page parameter is not supported for large datasets, please use cursor based pagination (after/before)",
      documentation_url: "https://docs.github.com/rest/issues/issues#list-repository-issues",
      status: "422",
    });
    expect((await world.get(below("/pulls?per_page=100&page=100"))).body).toEqual([]);
  });
});

function linked(link: string | null, rel: string): string | null {
  return new RegExp(`<([^>]+)>; rel="${rel}"`).exec(link ?? "")?.[1] ?? null;
}

import { describe, expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { decodeCursor, encodeCursor } from "../../src/simulator/graphql/cursor.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Issue } from "../../src/simulator/world/records.ts";
import { World } from "../../src/simulator/world/world.ts";
import { NOON, openGraphql } from "./graphql-world.ts";

const clock = new SettableClock(NOON);
const world = new World({ seed: 3, clock });
const [repository] = generateWorld(world, { seed: 3, repositories: 1, issues: 240, pulls: 110 }).repositories as [
  never,
];
const [owner, name] = world.fullName(repository).split("/");
const at = openGraphql({ world, clock });
const issues: Issue[] = [...world.issues.values()].filter((issue) => !issue.pull);

async function walk(
  connection: string,
  options: { readonly backwards?: boolean; readonly size: number; readonly args?: string; readonly select?: string },
) {
  const rows: { number: number }[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < 500; pages++) {
    const bounds: string = options.backwards ? "last: $size, before: $cursor" : "first: $size, after: $cursor";
    const query = `query ($owner: String!, $name: String!, $size: Int!, $cursor: String) { repository(owner: $owner, name: $name) {
      page: ${connection}(${bounds}${options.args ? `, ${options.args}` : ""}) { totalCount nodes { ${options.select ?? "number"} } edges { cursor } pageInfo { startCursor endCursor hasNextPage hasPreviousPage } } } }`;
    const reply = await at.ask(query, { owner, name, size: options.size, cursor });
    expect(reply.errors).toBeUndefined();
    const { nodes, edges, pageInfo } = reply.data.repository.page;
    if (nodes.length > 0) {
      expect(pageInfo.startCursor).toBe(edges[0].cursor);
      expect(pageInfo.endCursor).toBe(edges.at(-1).cursor);
      expect(options.backwards ? pageInfo.hasNextPage : pageInfo.hasPreviousPage).toBe(cursor !== null);
    }
    if (options.backwards) rows.unshift(...nodes);
    else rows.push(...nodes);
    const more = options.backwards ? pageInfo.hasPreviousPage : pageInfo.hasNextPage;
    if (!more) return rows;
    cursor = options.backwards ? pageInfo.startCursor : pageInfo.endCursor;
  }
  throw new Error("The walk does not end");
}

describe("a walk meets every row once, in one order, in both directions", () => {
  const orders = ["CREATED_AT", "UPDATED_AT", "COMMENTS"].flatMap((field) =>
    ["ASC", "DESC"].map((direction) => [field, direction] as const),
  );
  test.each(orders)("issues by %s %s", async (field, direction) => {
    const args = `orderBy: { field: ${field}, direction: ${direction} }`;
    const forwards = await walk("issues", { size: 37, args });
    expect(forwards.map((row) => row.number).sort((a, b) => a - b)).toEqual(
      issues.map((issue) => issue.number).sort((a, b) => a - b),
    );
    expect(await walk("issues", { size: 41, args, backwards: true })).toEqual(forwards);
    const key = (issue: Issue) =>
      ({ CREATED_AT: issue.createdAt, UPDATED_AT: issue.updatedAt, COMMENTS: issue.thread.length })[field] as number;
    const sign = direction === "ASC" ? 1 : -1;
    const expected = [...issues].sort((a, b) => sign * (key(a) - key(b) || a.id - b.id));
    expect(forwards.map((row) => row.number)).toEqual(expected.map((issue) => issue.number));
  });
  test.each(["MERGED", "OPEN", "CLOSED"])("pull requests that are %s", async (state) => {
    const found = await walk("pullRequests", { size: 7, args: `states: [${state}]`, select: "number state" });
    expect(found.length).toBeGreaterThan(0);
    expect(new Set(found.map((row) => (row as { state?: string }).state))).toEqual(new Set([state]));
    expect(
      await walk("pullRequests", { size: 9, args: `states: [${state}]`, select: "number state", backwards: true }),
    ).toEqual(found);
  });
  test("labels by name, milestones with and without due date", async () => {
    expect(
      (await walk("labels", { size: 4, args: "orderBy: { field: NAME, direction: DESC }", select: "name" })).length,
    ).toBe(15);
    const due = await walk("milestones", {
      size: 1,
      args: "orderBy: { field: DUE_DATE, direction: ASC }",
      select: "number dueOn",
    });
    expect(due.length).toBe(world.milestones.size);
    expect(
      await walk("milestones", {
        size: 2,
        args: "orderBy: { field: DUE_DATE, direction: ASC }",
        select: "number dueOn",
        backwards: true,
      }),
    ).toEqual(due);
  });
});

describe("filters", () => {
  test("since is inclusive and combines with each order", async () => {
    const since = [...issues].sort((a, b) => b.updatedAt - a.updatedAt)[60]?.updatedAt as number;
    const iso = new Date(since * 1_000).toISOString();
    const expected = issues.filter((issue) => issue.updatedAt >= since).map((issue) => issue.number);
    for (const field of ["CREATED_AT", "UPDATED_AT", "COMMENTS"]) {
      for (const direction of ["ASC", "DESC"]) {
        const found = await walk("issues", {
          size: 10,
          args: `filterBy: { since: "${iso}" }, orderBy: { field: ${field}, direction: ${direction} }`,
        });
        expect(found.map((row) => row.number).sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
      }
    }
  });
  test("an unset variable is no filter, a literal null means has none", async () => {
    const query = (value: string) =>
      `query ($owner: String!, $name: String!, $assignee: String) { repository(owner: $owner, name: $name) { issues(filterBy: { assignee: ${value} }) { totalCount } } }`;
    const count = async (value: string, variables = {}) =>
      (await at.ask(`${query(value)}`, { owner, name, ...variables })).data?.repository.issues.totalCount;
    const none = issues.filter((issue) => issue.assigneeIds.length === 0).length;
    expect(await count("$assignee")).toBe(issues.length);
    expect(await count("$assignee", { assignee: "*" })).toBe(issues.length - none);
    const literal = query("null").replace(", $assignee: String", "");
    expect((await at.ask(literal, { owner, name })).data.repository.issues.totalCount).toBe(none);
  });
  test("totalCount is the number of rows a walk finds", async () => {
    for (const args of [
      "states: OPEN",
      "states: [CLOSED]",
      "states: [OPEN, CLOSED]",
      'labels: ["bug"]',
      'filterBy: { createdBy: "nobody" }',
    ]) {
      const reply = await at.ask(
        `query ($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { issues(${args}) { totalCount } } }`,
        { owner, name },
      );
      expect(reply.data.repository.issues.totalCount).toBe((await walk("issues", { size: 50, args })).length);
    }
  });
});

describe("cursors", () => {
  test("are base64 of a prefix and a MessagePack pair", () => {
    const cursor = encodeCursor("2026-10-01T12:00:00Z", 3_000_000_000);
    expect(Buffer.from(cursor, "base64").toString("latin1")).toMatch(/^cursor:v2:\x92\xb42026-10-01T12:00:00Z\xce/);
    for (const [key, id] of [
      ["x".repeat(300), 1],
      [null, 200],
      [70_000, 5_000_000_000],
      ["ü😀", 65_536],
    ] as const) {
      expect(decodeCursor(encodeCursor(key, id))).toEqual([key, id]);
    }
  });
  test.each([
    "",
    "AAAA",
    Buffer.from("cursor:v2:").toString("base64"),
    Buffer.from("cursor:v2:\x92\x01", "latin1").toString("base64"),
  ])("%j is none", (text) => {
    expect(decodeCursor(text)).toBeUndefined();
  });
});

test("a cursor stays valid when its row moves or is gone", async () => {
  const query = `query ($owner: String!, $name: String!, $after: String) { repository(owner: $owner, name: $name) {
    issues(first: 10, after: $after, orderBy: { field: UPDATED_AT, direction: ASC }) { nodes { number } pageInfo { endCursor } } } }`;
  const first = (await at.ask(query, { owner, name })).data.repository.issues;
  const expected = (await at.ask(query, { owner, name, after: first.pageInfo.endCursor })).data.repository.issues.nodes;
  const moved = world.issue(repository, first.nodes[9].number) as Issue;
  world.bump(moved, moved.updatedAt + 400 * 86_400 * 10);
  expect((await at.ask(query, { owner, name, after: first.pageInfo.endCursor })).data.repository.issues.nodes).toEqual(
    expected,
  );
});

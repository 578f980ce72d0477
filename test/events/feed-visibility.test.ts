import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { TestWorld } from "../support/world.ts";
import { type FeedWorld, openFeedWorld, star } from "./feed-world.ts";
import { type ToldRepository, tell } from "./tell.ts";

// An entry of the log is for those to whom it was visible when it was logged, and as upstream shows its subject now.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: TestWorld;
let open: ToldRepository;
let stranger: string;
let userId: number;
let follow: FeedWorld["follow"];

beforeAll(async () => {
  ({ world, open, stranger, userId, follow } = await openFeedWorld());
});
afterAll(() => world?.[Symbol.asyncDispose]());

const SECRET = "what was taken back";

/** The place in the log from which a test reads. */
async function here(): Promise<number> {
  await world.settle();
  const [row] = await world.ctx.db.query<{ id: number }>(
    sql`select coalesce(max(id), 0)::float8 as id from events where id is not null`,
  );
  return row?.id ?? 0;
}

let made = 0;
const starred = (repository: ToldRepository) => {
  made += 1;
  return star(world, made, repository);
};

/** What a reader is told since a place, up to a star that is told last. */
async function toldSince(since: number, token: string): Promise<Body[]> {
  const last = await starred(open);
  await world.settle();
  await using reader = await follow({ token, query: `?since=${since}` });
  const told: Body[] = [];
  for (;;) {
    const one = await reader.next();
    if (one.githubdelivery === last) return told;
    told.push(one);
  }
}

const now = (aheadMs: number) => `${new Date(Date.now() + aheadMs).toISOString().slice(0, 19)}Z`;

/** Tells of an issue and a comment, with texts that are then taken back. Answers the id of the comment. */
async function spoken(id: number, number = 1): Promise<{ issue: Body; comment: Body }> {
  const { body: issue } = await world.get(`/repos/${open.full_name}/issues/${number}`);
  const api = `https://api.github.com/repos/${open.full_name}/issues`;
  const said = { ...(issue as object), body: SECRET, title: SECRET, updated_at: now(0) };
  const comment = {
    ...{ id, node_id: `IC_${id}`, url: `${api}/comments/${id}`, issue_url: `${api}/${number}`, html_url: "" },
    ...{ body: SECRET, created_at: now(0), updated_at: now(0), author_association: "NONE" },
    user: (issue as { user: object }).user,
  };
  await tell(world, { event: "issues", payload: { action: "edited", issue: said, repository: open, changes: {} } });
  const payload = { action: "created", issue: said, comment, repository: open };
  await tell(world, { event: "issue_comment", payload });
  await world.settle();
  return { issue: said, comment };
}

test("what happened while a repository was private is told only to those with a right there", async () => {
  const reader = await createApiToken(world.ctx, { userId, canWrite: false });
  const since = await here();
  await world.ctx.db.query(sql`update repositories set private = true where id = ${open.id}`);
  const hidden = await starred(open);
  await world.settle();
  await world.ctx.db.query(sql`update repositories set private = false where id = ${open.id}`);
  // The payload says it where the mirror did not know it yet.
  const early = await starred({ ...open, private: true } as ToldRepository);
  const shown = await starred(open);
  await world.settle();
  const guids = async (token: string) => (await toldSince(since, token)).map((one) => one.githubdelivery);
  expect(await guids(stranger)).toEqual([shown]);
  expect(await guids(reader)).toEqual(expect.arrayContaining([hidden, early, shown]));
});

test("entries of an older version count as private if the repository was published since", async () => {
  const since = await here();
  const before = await starred(open);
  await tell(world, { event: "public", payload: { repository: open } });
  const after = await starred(open);
  await world.settle();
  await world.ctx.db.query(sql`update events set was_private = null where id > ${since}`);
  const guids = (await toldSince(since, stranger)).map((one) => one.githubdelivery);
  expect(guids).not.toContain(before);
  expect(guids).toContain(after);
});

test("a comment that was deleted is told of no more: its deletion names it, without its text", async () => {
  const since = await here();
  const { issue, comment } = await spoken(910_001);
  await tell(world, { event: "issue_comment", payload: { action: "deleted", issue, comment, repository: open } });
  await world.settle();
  const told = await toldSince(since, stranger);
  expect(told.map(({ type }) => type)).not.toContain("com.github.issue_comment.created");
  const deleted = told.find(({ type }) => type === "com.github.issue_comment.deleted");
  expect(deleted?.data.comment).toMatchObject({ id: 910_001 });
  expect(deleted?.data.comment).not.toHaveProperty("body");
  // A hook was sent all of it, and so a token that may register hooks is.
  const asHook = await createApiToken(world.ctx, { userId, canWrite: false, permissions: ["hooks:write"] });
  expect(JSON.stringify(await toldSince(since, asHook))).toContain(SECRET);
});

test("texts that were overwritten are shown as they are now, and former values of bodies not at all", async () => {
  const since = await here();
  const { issue, comment } = await spoken(910_002);
  const newer = { updated_at: now(5_000), body: "better", title: "Better" };
  await tell(world, {
    event: "issues",
    payload: {
      ...{ action: "edited", issue: { ...issue, ...newer }, repository: open },
      changes: { body: { from: SECRET } },
    },
  });
  await tell(world, {
    event: "issue_comment",
    payload: {
      ...{ action: "edited", issue: { ...issue, ...newer }, repository: open, changes: { body: { from: SECRET } } },
      comment: { ...comment, body: "softer", updated_at: now(5_000) },
    },
  });
  await world.settle();
  const told = await toldSince(since, stranger);
  expect(JSON.stringify(told)).not.toContain(SECRET);
  const comments = told.filter(({ type }) => type.startsWith("com.github.issue_comment."));
  expect(comments.map(({ data }) => [data.comment.body, data.issue.title, data.issue.body])).toEqual([
    ["softer", "Better", "better"],
    ["softer", "Better", "better"],
  ]);
  expect(comments.at(-1)?.data.changes).toEqual({ body: {} });
});

test("what the mirror does not hold is told without texts, since nobody could say whether they stand", async () => {
  const since = await here();
  const texts = { body: SECRET, name: SECRET };
  await tell(world, {
    event: "commit_comment",
    payload: { action: "created", comment: { id: 3, commit_id: "abc", body: SECRET }, repository: open },
  });
  await tell(world, {
    event: "release",
    payload: { action: "edited", release: { id: 7, draft: false, tag_name: "v1", ...texts }, repository: open },
  });
  await tell(world, {
    event: "pull_request_review_thread",
    payload: { action: "resolved", thread: { node_id: "T", comments: [{ id: 9, body: SECRET }] }, repository: open },
  });
  await world.settle();
  const told = await toldSince(since, stranger);
  expect(told.map(({ type }) => type)).toEqual([
    "com.github.commit_comment.created",
    "com.github.release.edited",
    "com.github.pull_request_review_thread.resolved",
  ]);
  expect(JSON.stringify(told)).not.toContain(SECRET);
  expect(told[1].data.release).toMatchObject({ id: 7, tag_name: "v1" });
});

test("an issue that was deleted takes along what was said of it", async () => {
  const since = await here();
  const { issue } = await spoken(910_003, 2);
  await tell(world, { event: "issues", payload: { action: "deleted", issue, repository: open } });
  await world.settle();
  const told = await toldSince(since, stranger);
  expect(JSON.stringify(told)).not.toContain(SECRET);
  expect(told.map(({ type }) => type)).toEqual(["com.github.issues.deleted"]);
  expect(told[0].data.issue).toMatchObject({ number: 2 });
});

test("an entry that an earlier version kept and nobody can show ends no feed", async () => {
  const since = await here();
  const bad = await starred(open);
  await world.settle();
  const deep = `${'{"base":'.repeat(20_000)}1${"}".repeat(20_000)}`;
  const kept = `{"action":"created","repository":{"id":${open.id},"base":${deep}}}`;
  await world.ctx.db.query(sql`update deliveries set payload = convert_to(${kept}, 'UTF8') where guid = ${bad}`);
  const told = (await toldSince(since, stranger)).map((one) => one.githubdelivery);
  expect(told).toEqual([]);
});

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { LogEnd } from "../../src/events/log-end.ts";
import { pruneDeliveries } from "../../src/inbox/prune.ts";
import { PATIENCE_MS } from "../support/bounds.ts";
import { eventually } from "../support/patience.ts";
import type { TestWorld } from "../support/world.ts";
import type { FeedReader } from "./feed-reader.ts";
import { type FeedWorld, openFeedWorld, star } from "./feed-world.ts";
import { type ToldRepository, tell } from "./tell.ts";

let world: TestWorld;
let open: ToldRepository;
let hidden: ToldRepository;
let stranger: string;
let userId: number;
let follow: FeedWorld["follow"];

beforeAll(async () => {
  ({ world, open, hidden, stranger, userId, follow } = await openFeedWorld());
});
afterAll(() => world?.[Symbol.asyncDispose]());

let made = 0;
const starred = (repository: ToldRepository, more: object = {}) => {
  made += 1;
  return star(world, made, repository, more);
};

async function commented(repository: ToldRepository, number: number): Promise<string> {
  const { body: issue } = await world.get(`/repos/${repository.full_name}/issues/${number}`);
  const at = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const api = `https://api.github.com/repos/${repository.full_name}/issues`;
  made += 1;
  const comment = {
    ...{
      id: 900_000 + made,
      node_id: `IC_${made}`,
      url: `${api}/comments/${900_000 + made}`,
      issue_url: `${api}/${number}`,
    },
    ...{ html_url: "", body: "Hello", created_at: at, updated_at: at, author_association: "NONE" },
    user: (issue as { user: object }).user,
  };
  return tell(world, { event: "issue_comment", payload: { action: "created", issue, comment, repository } });
}

test("a reader from the beginning is let in, though the first place in the log went to an event that was undone", async () => {
  const placing = world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`select nextval('event_place')`);
    throw new Error("As a process that dies");
  });
  await expect(placing).rejects.toThrow("As a process that dies");
  await using reader = await follow({ query: "?since=0" });
  expect(reader.answer.status).toBe(200);
  const guid = await starred(open);
  expect((await reader.next()).githubdelivery).toBe(guid);
  await using again = await follow({ query: "?since=0" });
  expect((await again.next()).githubdelivery).toBe(guid);
});

test("an event is told as CloudEvents 1.0 has it, in both forms, with what upstream sent", async () => {
  await using lines = await follow();
  await using events = await follow({ accept: "text/event-stream" });
  expect(lines.answer.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
  expect(events.answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const guid = await starred(open, { text: "a/b \u2028 ü\n" });
  const told = await lines.next();
  expect(told).toMatchObject({
    ...{
      specversion: "1.0",
      id: expect.stringMatching(/^\d+$/),
      type: "com.github.star.created",
      githubdelivery: guid,
    },
    ...{ source: `${world.url}/repos/${open.full_name}`, datacontenttype: "application/json" },
    data: { action: "created", number: made, repository: { full_name: open.full_name } },
  });
  expect(Date.parse(told.time)).not.toBeNaN();
  const { sse, sseId, ...same } = await events.next();
  expect([sse, sseId]).toEqual(["message", told.id]);
  expect(same).toEqual(told);
});

test("the subject says which issue it is about, and filters let through what they name", async () => {
  await using all = await follow({ query: `?repository=${open.full_name}&event=issue_comment&action=created,edited` });
  await using none = await follow({ query: "?action=deleted" });
  await starred(open);
  await commented(open, 1);
  await starred(hidden, { action: "deleted" });
  expect(await all.next()).toMatchObject({
    type: "com.github.issue_comment.created",
    subject: expect.stringMatching(/\/1$/),
  });
  expect(await none.next()).toMatchObject({ type: "com.github.star.deleted" });
});

test.each(["Last-Event-ID", "since"])(
  "a reader who comes back with %s is told what it missed, once and in order",
  async (by) => {
    await using first = await follow();
    await starred(open);
    const { id } = await first.next();
    await first[Symbol.asyncDispose]();
    for (let count = 0; count < 3; count++) await starred(open);
    const asking = by === "since" ? { query: `?since=${id}` } : { headers: { "last-event-id": id }, query: "?since=0" };
    await using second = await follow(asking);
    const told = await second.take(3);
    expect(told.map(({ data }) => data.number)).toEqual([made - 2, made - 1, made]);
    expect(told.map((one) => Number(one.id)).every((place) => place > Number(id))).toBe(true);
  },
);

test("a sign of life at the beginning says from where a reader goes on that was told nothing", async () => {
  await using silent = await follow({ accept: "text/event-stream", query: "?action=never" });
  void silent.next();
  await eventually(() => expect(silent.id).toMatch(/^\d+$/));
  await starred(open);
  await using next = await follow({ headers: { "last-event-id": silent.id ?? "" } });
  expect((await next.next()).data.number).toBe(made);
});

test("each reader is told only what they may see", async () => {
  await using owner = await follow();
  await using other = await follow({ token: stranger });
  const noIssues = await createApiToken(world.ctx, { userId, canWrite: false, permissions: ["pull_requests:read"] });
  await using byKind = await follow({ token: noIssues });
  await starred(hidden);
  await commented(hidden, 1);
  // The order is that of receipt within one repository only.
  await world.settle();
  // What only hooks hear of.
  await tell(world, { event: "secret_scanning_alert", payload: { action: "created", repository: open } });
  await starred(open);
  const { is_pull_request: isPull } = (
    await world.ctx.db.query<{ is_pull_request: boolean }>(
      sql`select is_pull_request from issues where repository_id = ${hidden.id} and number = 1`,
    )
  )[0] ?? { is_pull_request: false };
  const types = async (reader: FeedReader, count: number) => (await reader.take(count)).map(({ type }) => type);
  const [star, comment] = ["com.github.star.created", "com.github.issue_comment.created"];
  expect(await types(owner, 3)).toEqual([star, comment, star]);
  expect(await types(other, 1)).toEqual([star]);
  expect(await types(byKind, isPull ? 3 : 2)).toEqual(isPull ? [star, comment, star] : [star, star]);
  const asHook = await createApiToken(world.ctx, { userId, canWrite: false, permissions: ["hooks:write"] });
  await using hook = await follow({ token: asHook, query: `?since=${Number(other.id) - 2}` });
  expect(await types(hook, 2)).toEqual(["com.github.secret_scanning_alert.created", star]);
  // Who may not see a repository is not told that it is there.
  expect((await follow({ token: stranger, query: `?repository=${hidden.full_name}` })).answer.status).toBe(404);
});

test("a release that is a draft is told only to who may push, as reads show it", async () => {
  const { tokens, world: upstream } = world.simulator;
  for (const role of ["push", "pull"] as const) {
    const { userId } = tokens.create({ token: `ghp_${role}`, login: role });
    upstream.repositories.get(hidden.id)?.collaborators.set(userId, role);
  }
  const asHook = await createApiToken(world.ctx, { userId, canWrite: false, permissions: ["hooks:write"] });
  const readers = await Promise.all([world.token, "ghp_push", "ghp_pull", asHook].map((token) => follow({ token })));
  await using _closing = {
    [Symbol.asyncDispose]: () => Promise.all(readers.map((one) => one[Symbol.asyncDispose]())).then(() => {}),
  };
  const released = (draft: boolean | undefined) =>
    tell(world, { event: "release", payload: { action: "edited", release: { id: 1, draft }, repository: hidden } });
  await released(true);
  await released(undefined);
  await released(false);
  const told = async (reader: FeedReader | undefined, count: number) =>
    (await reader?.take(count))?.map(({ data }) => data.release.draft);
  const [own, pusher, reader, hook] = readers;
  expect(await told(own, 1)).toEqual([false]);
  expect(await told(reader, 1)).toEqual([false]);
  expect(await told(pusher, 3)).toEqual([true, undefined, false]);
  expect(await told(hook, 3)).toEqual([true, undefined, false]);
});

test("of a payload a reader is shown what reads show them: no other private repository, no member", async () => {
  await using other = await follow({ token: stranger });
  const { body: issue } = await world.get(`/repos/${open.full_name}/issues/1`);
  const payload = {
    action: "transferred",
    issue: {
      ...(issue as object),
      author_association: "MEMBER",
      parent_issue_url: "https://api.github.com/repos/a/b/issues/1",
    },
    changes: { new_issue: issue, new_repository: hidden },
    repository: { ...open, secret_setting: true },
    unknown_key: true,
  };
  // The mirror only passes this event on, and merges nothing of its payload.
  await tell(world, { event: "watch", payload });
  const { data } = await other.next();
  expect(data).toMatchObject({ action: "transferred", issue: { number: 1 }, changes: {}, repository: { id: open.id } });
  expect(JSON.stringify(data)).not.toMatch(
    new RegExp(`${hidden.full_name}|MEMBER|parent_issue_url|secret_setting|unknown_key`),
  );
});

test("it ends once the token is none any more, and once it sees something else", async () => {
  world.simulator.tokens.create({ token: "ghp_to_revoke", login: "stranger", repositories: [] });
  world.simulator.tokens.create({ token: "ghp_to_change", login: "stranger", repositories: [] });
  await using revoked = await follow({ token: "ghp_to_revoke" });
  await using changed = await follow({ token: "ghp_to_change", accept: "text/event-stream" });
  await starred(open);
  await Promise.all([revoked.next(), changed.next()]);
  world.simulator.tokens.delete("ghp_to_revoke");
  world.simulator.tokens.delete("ghp_to_change");
  world.simulator.tokens.create({ token: "ghp_to_change", login: "stranger", repositories: [hidden.full_name] });
  world.advance(61_000);
  await starred(open);
  expect(await revoked.next()).toMatchObject({ type: "tain.end", data: { message: "Bad credentials" } });
  expect(await revoked.next()).toBeNull();
  expect(await changed.next()).toMatchObject({ sse: "end", message: "What this token may see has changed. Read on." });
  // The stream ended at the id before the event that was not told, so reading on from there tells of it.
  await using again = await follow({ token: "ghp_to_change", query: `?since=${changed.id}` });
  expect((await again.next()).data.number).toBe(made);
});

test("what is too large to be taken apart is told only to who is shown all of it", async () => {
  await using owner = await follow();
  await using other = await follow({ token: stranger });
  await starred(open, { text: "x".repeat(1_000_001) });
  await starred(open);
  expect((await owner.take(2)).map(({ data }) => data.number)).toEqual([made - 1, made]);
  expect((await other.next()).data.number).toBe(made);
});

test("a repository that is made private is told of no more", async () => {
  await using other = await follow({ token: stranger });
  const { ctx } = world;
  await ctx.db.query(sql`update repositories set private = true where id = ${open.id}`);
  await starred(open);
  await world.settle();
  await ctx.db.query(sql`update repositories set private = false where id = ${open.id}`);
  await starred(open);
  expect((await other.next()).data.number).toBe(made);
});

test.each([
  ["without a token", { token: "" }, 401, /Requires authentication/],
  ["in another form", { accept: "application/json" }, 406, /text\/event-stream/],
  ["with a parameter that there is not", { query: "?repo=a/b" }, 400, /no parameter repo/],
  ["from what is no place", { query: "?since=yesterday" }, 400, /a number/],
  ["from a place that was never given out", { query: "?since=999999999" }, 400, /another mirror/],
])("%s it is refused in words", async (_what, asking, status, message) => {
  const { answer } = await follow(asking);
  expect(answer.status).toBe(status);
  expect(await answer.json()).toMatchObject({ message: expect.stringMatching(message) });
});

test("a program has to say its name, and is told its quota also where it is refused", async () => {
  const nameless = await follow({ headers: { "user-agent": "" } });
  expect(nameless.answer.status).toBe(403);
  expect(await nameless.answer.text()).toContain("User-Agent");
  const misspelt = await follow({ query: "?repo=a/b" });
  expect(misspelt.answer.headers.get("x-ratelimit-resource")).toBe("core");
  const poor = await createApiToken(world.ctx, { userId, canWrite: false, hourlyLimit: 1 });
  await using first = await follow({ token: poor });
  expect(first.answer.status).toBe(200);
  const spent = await follow({ token: poor });
  expect(spent.answer.status).toBe(403);
  expect(spent.answer.headers.get("x-ratelimit-remaining")).toBe("0");
  expect(Number(spent.answer.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("it is one of a few streams that a caller may have, lasts for so long, and takes its reader's quota", async () => {
  const url = await world.openSibling({ STREAMS_PER_CALLER: "1" }, { lifetimeMs: 400 });
  const poor = await createApiToken(world.ctx, { userId, canWrite: false, hourlyLimit: 3 });
  await using first = await follow({ url });
  expect((await follow({ url })).answer.status).toBe(429);
  expect(await first.next()).toMatchObject({ type: "tain.end", data: { message: expect.stringMatching(/lasted/) } });
  // Opening it is a request, and so is each look into the log that finds something.
  await using second = await follow({ token: poor });
  for (const _ of [1, 2]) {
    await starred(open);
    expect((await second.next()).type).toBe("com.github.star.created");
  }
  await starred(open);
  expect(await second.next()).toMatchObject({
    type: "tain.end",
    data: { message: expect.stringMatching(/rate limit/) },
  });
});

test("a reader who does not read is dropped, and nothing is kept for them", async () => {
  const url = await world.openSibling({}, { unreadMs: 100 });
  const asking = request(`${url}/-/events`, {
    headers: { authorization: `Bearer ${world.token}`, "user-agent": "test", accept: "application/x-ndjson" },
  });
  asking.end();
  // No type can say what an event comes with.
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  answer.pause();
  const text = "x".repeat(500_000);
  for (let count = 0; count < 20; count++) await starred(open, { text });
  const listeners = async () =>
    await world.ctx.db.count(sql`
      select from pg_stat_activity where application_name = 'tain subscriptions' and datname = current_database()`);
  await expect.poll(listeners, { timeout: PATIENCE_MS }).toBe(0);
  asking.destroy();
});

test("when the database was away the stream ends, and the reader goes on where it was", async () => {
  await using reader = await follow();
  await starred(open);
  await reader.next();
  await world.ctx.db.query(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'tain subscriptions' and datname = current_database()`);
  expect(await reader.next()).toMatchObject({ type: "tain.end", data: { message: expect.stringMatching(/Read on/) } });
  await starred(open);
  await using again = await follow({ query: `?since=${reader.id}` });
  expect((await again.next()).data.number).toBe(made);
});

test("places that are committed out of order are told in order, and one that is never taken holds up nothing", async () => {
  const { db } = world.ctx;
  const end = new LogEnd(db, Math.random);
  await using reader = await follow();
  const guid = await starred(open);
  await reader.next();
  await end.now();
  /** Gives out a place, as what settles deliveries does, and ends once that is asked for. */
  const placing = async (named: string) => {
    const [placed, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<"commit" | "rollback">()];
    const done = db.transaction(async (tx) => {
      await tx.query(sql`
        insert into events (repository_id, guid, id, delivery_id, event, action, received_at)
          select repository_id, ${named}, nextval('event_place'), delivery_id, event, action, received_at
            from events where guid = ${guid}`);
      placed.resolve();
      if ((await asked.promise) === "rollback") throw new Error("As a process that dies");
    });
    await Promise.race([placed.promise, done]);
    return { done, end: asked.resolve };
  };
  const late = await placing("late");
  const [next, after] = [reader.next(), await starred(open)];
  await world.settle();
  const asked = end.now();
  late.end("commit");
  await late.done;
  expect((await next).githubdelivery).toBe("late");
  expect((await reader.next()).githubdelivery).toBe(after);
  expect(await asked).toEqual({ place: Number(reader.id), isCertain: true });

  const dying = await placing("dead");
  const last = await starred(open);
  dying.end("rollback");
  await expect(dying.done).rejects.toThrow("As a process that dies");
  expect((await reader.next()).githubdelivery).toBe(last);
});

test("who was away for longer than events are kept is refused, and told from where it can go on; a stream ends so, too", async () => {
  await using reader = await follow();
  await starred(open);
  const { id } = await reader.next();
  await starred(open);
  const { id: last } = await reader.next();
  const week = { ...world.ctx, clock: { now: () => new Date(Date.now() + 8 * 24 * 3_600_000) } };
  await pruneDeliveries(week);
  const { answer } = await follow({ query: `?since=${id}` });
  expect(answer.status).toBe(410);
  const body = (await answer.json()) as { message: string; since: string };
  expect(body).toMatchObject({ since: last, message: expect.stringContaining(`since=${last}`) });
  await using again = await follow({ query: `?since=${body.since}` });
  await starred(open);
  expect((await again.next()).data.number).toBe(made);
  expect((await reader.next()).data.number).toBe(made);
});

test("the figures say how many read, how many events they were told, and who was dropped", async () => {
  const text = (await world.ctx.metrics.text())
    .split("\n")
    .filter((line) => line.startsWith("tain_feed_"))
    .join("\n");
  expect(text).toMatch(/^tain_feed_readers\{form="ndjson"\} \d+$/m);
  expect(text).toMatch(/^tain_feed_events_total\{form="sse"\} [1-9]\d*$/m);
  for (const reason of ["gone", "rights", "quota", "lost"])
    expect(text).toMatch(new RegExp(`^tain_feed_ended_total\\{form="\\w+",reason="${reason}"\\} [1-9]`, "m"));
});

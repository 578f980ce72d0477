/** Targets with a format and filters, from the log of events to the receiver. */
import { randomUUID } from "node:crypto";
import { HTTP } from "cloudevents";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { dueTargets } from "../../src/events/cursors.ts";
import { recordEvents } from "../../src/events/log.ts";
import { TargetClient } from "../../src/events/post.ts";
import { listSent } from "../../src/events/sent.ts";
import { createTarget, type TargetConfig, type Telling } from "../../src/events/target.ts";
import { sendTo } from "../../src/events/turn.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { readDiscord, readSlack, readTeams } from "./chat-rules.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";

let opened: AsyncDisposableStack;
let mirror: TestMirror;
let client: TargetClient;
beforeEach(async () => {
  opened = new AsyncDisposableStack();
  mirror = opened.use(await openMirror({ web: false, env: { TARGETS_ALLOWED: "127.0.0.1", TARGETS_RETRY_FOR: "1h" } }));
  client = new TargetClient(mirror.ctx);
  opened.defer(() => client.close());
});
afterEach(() => opened.disposeAsync());

async function openTarget(given: Partial<TargetConfig & Telling>): Promise<{ id: number; server: TargetServer }> {
  const server = opened.use(await openTargetServer());
  const { id } = await createTarget(mirror.ctx, {
    ...{ scope: { kind: "everything", id: 0 }, madeBy: "operator", url: server.url, contentType: "json" },
    ...{ insecureSsl: false, secret: null, events: ["*"], active: true, rewriteTo: null },
    ...given,
  });
  return { id, server };
}

/** Writes an event of a repository into the log, as the worker does that has applied its delivery. */
async function log(repositoryId: number, event: string, payload: { action?: string }): Promise<string> {
  const { db, clock } = mirror.ctx;
  const [guid, now] = [randomUUID(), clock.now()];
  const [delivery] = await db.query<{ id: string }>(sql`
    insert into deliveries (hook_id, guid, event, action, repository_id, payload, status, received_at, settled_at)
      values (1, ${guid}, ${event}, ${payload.action ?? null}, ${repositoryId},
        ${Buffer.from(JSON.stringify(payload))}, 'applied', ${now}, ${now}) returning id`);
  const told = { deliveryId: delivery?.id ?? "", repositoryId, ownerId: null, isPrivate: false, about: null };
  await db.transaction((tx) => recordEvents(tx, [told]));
  return guid;
}

/** Turns of a target, until nothing of it can be sent now. */
async function send(id: number): Promise<void> {
  while (await sendTo(mirror.ctx, client, id, AbortSignal.timeout(60_000)));
}

const HOME = "https://github.com/octo/demo";
const ISSUE = {
  action: "edited",
  issue: { number: 1, title: `<!channel> "it" @everyone`, html_url: `${HOME}/issues/1` },
  repository: { full_name: "octo/demo", html_url: HOME, url: "https://api.github.com/repos/octo/demo" },
};

test.each([
  ["slack", readSlack],
  ["teams", readTeams],
  ["discord", readDiscord],
] as const)("an event reaches %s as its message, once", async (format, read) => {
  const { id, server } = await openTarget({ format });
  await log(1, "issues", ISSUE);
  await send(id);
  const [heard, ...more] = server.heard;
  const { faults, calls, texts, links } = read(heard?.body ?? "");
  expect({ faults, calls, more }).toEqual({ faults: [], calls: [], more: [] });
  expect(texts.join("\n")).toContain(`#1 <!channel> "it" @everyone`);
  expect(links).toMatchObject([{ url: `${HOME}/issues/1` }]);
  expect(heard?.headers).toMatchObject({ "content-type": "application/json" });
});

test("an event reaches a receiver of CloudEvents in structured mode, again under the same id if it is sent again", async () => {
  const { id, server } = await openTarget({ format: "cloudevents", secret: "a secret" });
  const guid = await log(1, "issues", ISSUE);
  server.answer = (_, reply) => reply.writeHead(500).end();
  await send(id);
  server.answer = null;
  mirror.advance(3_600_000);
  await send(id);
  const told = server.heard.map(({ headers, body }) => HTTP.toEvent({ headers, body }));
  const event = { id: guid, type: "com.github.issues.edited", subject: "issues/1", data: ISSUE };
  expect(told).toMatchObject([event, event]);
  expect(server.heard[1]?.headers["x-hub-signature-256"]).toMatch(/^sha256=/);
});

test("a target hears only of the actions and labels that it wants, in order, and what it does not want wakes nobody", async () => {
  const { id, server } = await openTarget({ events: ["star"], actions: ["created"], labels: ["bug"] });
  const star = (number: number, action: string, ...labels: string[]) =>
    log(1, "star", { action, number, issue: { labels: labels.map((name) => ({ name })) } } as { action: string });
  await star(1, "deleted", "bug");
  expect(await dueTargets(mirror.ctx)).toEqual([]);
  await star(2, "created", "Bug");
  await star(3, "deleted", "bug");
  await star(4, "created", "docs");
  await star(5, "created");
  await star(6, "created", "docs", "BUG");
  await star(7, "created", "docs");
  await send(id);
  expect(server.heard.map(({ payload }) => payload.number)).toEqual([2, 6]);
  expect(await dueTargets(mirror.ctx)).toEqual([]);
  await star(8, "created", "bug");
  await send(id);
  expect(server.heard.map(({ payload }) => payload.number)).toEqual([2, 6, 8]);
});

test("a service that is sent too much is left alone for as long as it says, with all repositories, whatever it accepted", async () => {
  const { id, server } = await openTarget({ format: "discord" });
  for (let number = 0; number < 6; number++)
    await Promise.all([1, 2].map((repository) => log(repository, "star", { action: "created" })));
  server.answer = (_, reply) =>
    server.heard.length > 1 ? reply.writeHead(429, { "retry-after": "599.5" }).end("{}") : undefined;
  await send(id);
  // The first was accepted. Then each of the two repositories may have had one under way.
  const before = server.heard.length;
  expect(before).toBeLessThanOrEqual(3);
  server.answer = null;
  mirror.advance(500_000);
  expect(await dueTargets(mirror.ctx)).toEqual([]);
  mirror.advance(100_000);
  await send(id);
  const sent = await listSent(mirror.ctx, id, { limit: 99 });
  expect(sent.filter(({ isAccepted }) => isAccepted)).toHaveLength(12);
  expect(server.heard).toHaveLength(12 + before - 1);
});

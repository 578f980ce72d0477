/** Reads that Postgres takes long for: they are cancelled, and nothing but other reads waits for them. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { administer } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let locker: Database;
/** Only a superuser may cancel a superuser's statements, so the web process logs in as it does in production. */
const LOGIN = `slow_reads_${process.pid}`;
let asItself: { DATABASE_URL: string };
beforeAll(async () => {
  world = await openApiWorld({ issues: 40 });
  const url = new URL(world.env.DATABASE_URL ?? "");
  locker = openDatabase(url.href, { maxConnections: 2, applicationName: "locker" });
  await locker.query(sql.script(`create role ${LOGIN} login password '${LOGIN}' in role tain_web`));
  asItself = { DATABASE_URL: Object.assign(url, { username: LOGIN, password: LOGIN }).href };
});
afterAll(async () => {
  await locker?.close();
  await world?.[Symbol.asyncDispose]();
  await administer((admin) => admin.query(`drop role if exists ${LOGIN}`));
});

/** How many of callers' reads of this kind wait in Postgres for a lock. */
async function waiting(lane: "reads" | "searches" = "searches"): Promise<number> {
  const [row] = await locker.query<{ count: number }>(
    sql`select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and application_name = ${`tain ${lane}`} and wait_event_type = 'Lock'`,
  );
  return row?.count ?? 0;
}

/** Locks the table of issues' labels, so that a read that filters by labels waits. */
function whileLocked<T>(run: () => Promise<T>): Promise<T> {
  return locker.transaction(async (tx) => {
    await tx.query(sql`lock table issue_labels in access exclusive mode`);
    return await run();
  });
}

const SLOW = () => `/repos/${world.repositories[0]?.fullName}/issues?labels=bug`;

test("a search that takes longer than half of READ_TIMEOUT is cancelled, and answered 502 as the service does", async () => {
  const url = await world.openSibling({ READ_TIMEOUT: "1s" });
  await whileLocked(async () => {
    const answer = await fetch(url + SLOW(), {
      headers: { "User-Agent": "test", Authorization: `Bearer ${world.token}` },
    });
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({ message: "Server Error" });
    expect(await waiting()).toBe(0);
  });
  expect((await world.get(SLOW())).status).toBe(200);
});

/** With this setting a read may wait longer than the test lasts. */
const UNBOUNDED = { READ_TIMEOUT: "20m" };

test("a read whose caller goes away is cancelled", async () => {
  const url = await world.openSibling({ ...asItself, ...UNBOUNDED });
  await whileLocked(async () => {
    const leaving = new AbortController();
    const asking = fetch(url + SLOW(), {
      headers: { "User-Agent": "test", Authorization: `Bearer ${world.token}` },
      signal: leaving.signal,
    });
    asking.catch(() => {});
    await until("the read waits", async () => (await waiting()) === 1);
    leaving.abort();
    await until("no read waits any more", async () => (await waiting()) === 0);
  });
  expect((await world.get(SLOW())).status).toBe(200);
});

test("a GraphQL query that runs out of time is cancelled", async () => {
  const url = await world.openSibling({ ...asItself, ...UNBOUNDED }, { graphqlTimeoutMs: 700 });
  const [owner, name] = world.repositories[0]?.fullName.split("/") ?? [];
  const query = `{ repository(owner: "${owner}", name: "${name}") { issues(first: 5, labels: ["bug"]) { nodes { title } } } }`;
  await whileLocked(async () => {
    const answer = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { "User-Agent": "test", Authorization: `Bearer ${world.token}` },
      body: JSON.stringify({ query }),
    });
    expect(answer.status).toBe(502);
    await until("no read waits any more", async () => (await waiting()) === 0);
  });
  expect((await world.send("POST", "/graphql", { body: JSON.stringify({ query }) })).body.errors).toBeUndefined();
});

test("while searches take all of their connections, plain reads are answered, and their caller gets no second place", async () => {
  const url = await world.openSibling({ ...asItself, ...UNBOUNDED, RATE_LIMIT_USER: "1000000" });
  const plain = `/repos/${world.repositories[0]?.fullName}/issues?state=all`;
  const ask = (path: string, token: string | null, signal = AbortSignal.timeout(60_000)) =>
    fetch(url + path, {
      headers: { "User-Agent": "test", ...(token && { Authorization: `Bearer ${token}` }) },
      signal,
    });
  await whileLocked(async () => {
    const leaving = new AbortController();
    const searches = Array.from({ length: 6 }, (_, at) =>
      ask(`${SLOW()}&per_page=${at + 1}`, world.token, leaving.signal).catch(() => null),
    );
    await until("a search waits", async () => (await waiting()) === 1);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, at) => ask(`${plain}&per_page=${at + 1}`, world.token)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await waiting()).toBe(1);
    leaving.abort();
    await Promise.all(searches);
    await until("no search waits any more", async () => (await waiting()) === 0);
  });
});

test("a caller who waits too long behind their own searches is refused, and told when to come again", async () => {
  const url = await world.openSibling({ ...asItself, ...UNBOUNDED, RATE_LIMIT_USER: "1000000" });
  const headers = { "User-Agent": "test", Authorization: `Bearer ${world.token}` };
  await whileLocked(async () => {
    const leaving = new AbortController();
    const first = fetch(url + SLOW(), { headers, signal: leaving.signal }).catch(() => null);
    await until("a search waits", async () => (await waiting()) === 1);
    const others = await Promise.all(
      Array.from({ length: 45 }, (_, at) => fetch(`${url}${SLOW()}&per_page=${at + 1}`, { headers })),
    );
    for (const answer of others) {
      expect(answer.status).toBe(403);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await answer.json()).toMatchObject({
        message: expect.stringMatching(/^You have exceeded a secondary rate limit/),
      });
    }
    leaving.abort();
    await first;
    await until("no search waits any more", async () => (await waiting()) === 0);
  });
});

test("while all connections for reads wait, deliveries are accepted, and the probes and writes answered", async () => {
  const url = await world.openSibling({ READ_CONNECTIONS: "2", RATE_LIMIT_USER: "1000000" });
  const headers = { "User-Agent": "test", Authorization: `Bearer ${world.token}` };
  const [repository] = world.repositories;
  await whileLocked(async () => {
    const leaving = new AbortController();
    const signal = AbortSignal.timeout(15_000);
    const reads = Array.from({ length: 6 }, (_, at) =>
      fetch(`${url}/repos/${repository?.fullName}/milestones/1/labels?per_page=${at + 1}`, {
        headers,
        signal: leaving.signal,
      }).catch(() => {}),
    );
    await until("two reads wait", async () => (await waiting("reads")) === 2);
    const body = JSON.stringify({ zen: "Keep it logically awesome.", hook_id: 1 });
    const delivered = await fetch(`${url}/webhooks`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": crypto.randomUUID(),
        "X-GitHub-Hook-ID": "1",
        "X-Hub-Signature-256": `sha256=${createHmac("sha256", world.ctx.config.webhookSecrets[0] ?? "")
          .update(body)
          .digest("hex")}`,
      },
      body,
      signal,
    });
    expect(delivered.status).toBe(202);
    expect((await fetch(`${url}/-/ready`, { signal })).status).toBe(200);
    const written = await fetch(`${url}/repos/${repository?.fullName}/labels`, {
      method: "POST",
      headers,
      body: JSON.stringify({ name: "made while reads wait", color: "aabbcc" }),
      signal,
    });
    expect(written.status).toBe(201);
    leaving.abort();
    await Promise.all(reads);
  });
});

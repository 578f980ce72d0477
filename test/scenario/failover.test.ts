/**
 * The primary is lost and a replica is promoted. Everything that was acknowledged is there, and nothing is shown that
 * only the lost primary had.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { tell } from "../events/tell.ts";
import { printFigures } from "../support/figures.ts";
import { type Forwarder, openForwarder } from "../support/forwarder.ts";
import { eventually, until } from "../support/patience.ts";
import { openReplicated, type Replicated } from "../support/replicas.ts";
import { untilIdle } from "../support/world.ts";
import { type Body, openProcesses, openRetitling, standingsOf } from "./replica-world.ts";

/**
 * `npm run proofs failover` plays these tests. `npm test` runs `test/db/replicas.test.ts`, which holds what they rest
 * on.
 */
const IS_ASKED = process.env.FAILOVER === "1";
const reason = IS_ASKED ? "" : "(skipped: FAILOVER=1 plays it)";
const PER_SECOND = 100;
const SECONDS_BEFORE = 10;

/** Servers, and an address that leads to the primary. */
async function openServers(replicas: number): Promise<{ servers: Replicated; address: Forwarder; url: string }> {
  const resources = new AsyncDisposableStack();
  onTestFinished(() => resources.disposeAsync());
  const servers = resources.use(await openReplicated({ replicas }));
  const address = resources.use(await openForwarder(servers.primary.url));
  return { servers, address, url: address.through(servers.primary.url) };
}

test.skipIf(!IS_ASKED)(
  `no page shows a row that was lost with the primary, though its revision is given again ${reason}`,
  async () => {
    const { servers, address, url: databaseUrl } = await openServers(2);
    const { primary, replicas, promote } = servers;
    const [ahead, heir] = replicas;
    if (!ahead || !heir) throw new Error("There are no two replicas");
    const opened = await openProcesses({ databaseUrl, replicas: [ahead], processes: 2 });
    await using world = opened.world;
    const retitle = await openRetitling(world);
    const headers = { authorization: `token ${world.token}`, "user-agent": "test" };
    const [first, second] = [3, 4].map(
      (size) => `/repos/${world.first}/issues?state=all&sort=updated&per_page=${size}`,
    );
    /** The titles, or the statuses, that the processes answer with. */
    const shown = async (path = ""): Promise<Set<unknown>> => {
      const titles = opened.urls.map(async (url) => {
        const answer = await fetch(url + path, { headers });
        const body = (await answer.json()) as Body;
        return answer.ok ? body.find((one: Body) => one.number === 1)?.title : answer.status;
      });
      return new Set(await Promise.all(titles));
    };

    await retitle("before");
    for (const path of [first, second]) expect(await shown(path)).toEqual(new Set(["before"]));
    const positionOf = async () =>
      (await primary.query<{ at: string }>("select pg_current_wal_flush_lsn()::text as at"))[0]?.at;
    const kept = await positionOf();
    await until("the heir has it", async () => {
      const [row] = await heir.query<{ has: boolean }>(`select pg_last_wal_replay_lsn() >= '${kept}' as has`);
      return row?.has === true;
    });
    // The heir gets no more changes from the primary, while the other replica does.
    await heir.set("primary_conninfo", "");
    await until(
      "the heir follows nobody",
      async () => (await heir.query("select from pg_stat_wal_receiver")).length === 0,
    );
    const [given] = await primary.query<{ last: string }>("select last_value::text as last from revision");
    await retitle("lost");
    // Each process keeps these answers, with rows and revisions that are then lost.
    for (let time = 0; time < 3; time++)
      for (const path of [first, second]) expect(await shown(path)).toEqual(new Set(["lost"]));

    address.lead(null);
    await primary.kill();
    await promote(heir);
    address.lead(heir.url);
    const seen = new Set<unknown>();
    await eventually(async () => {
      const now = await shown(first);
      for (const one of now) if (typeof one === "string") seen.add(one);
      expect(now).toEqual(new Set(["before"]));
    });
    expect(seen).toEqual(new Set(["before"]));
    // The next change gets the same revisions as the lost one.
    await heir.query(`select setval('revision', ${given?.last})`);
    await retitle("after");
    for (const path of [second, first]) expect(await shown(path)).toEqual(new Set(["after"]));
    for (const url of opened.urls)
      await eventually(async () =>
        expect(await standingsOf(url)).toMatchObject([{ leftOut: expect.stringMatching(/another history/) }]),
      );
  },
);

test.skipIf(!IS_ASKED)(
  `deliveries that were acknowledged while a synchronous replica is promoted are all there ${reason}`,
  async () => {
    const { servers, address, url: databaseUrl } = await openServers(1);
    const { primary, replicas, promote } = servers;
    const [heir] = replicas;
    if (!heir) throw new Error("There is no replica");
    await primary.set("synchronous_standby_names", "*");
    const opened = await openProcesses({ databaseUrl, replicas, processes: 2 });
    await using world = opened.world;
    const [url = "", other = ""] = opened.urls;
    const issue = `/repos/${world.first}/issues/1`;
    const headers = { authorization: `token ${world.token}`, "user-agent": "test" };
    const [home] = await world.ctx.db.query<{ id: number; owner: number }>(
      sql`select id::float8 as id, owner_id::float8 as owner from repositories`,
    );
    const repository = { id: home?.id ?? 0, full_name: world.first, owner: { id: home?.owner ?? 0 } };
    const acknowledged: string[] = [];
    let [isOver, refused] = [false, 0];
    const sending = new Set<Promise<void>>();
    const send = async () => {
      while (!isOver) {
        const sent = tell({ ctx: world.ctx, url }, { event: "watch", payload: { action: "started", repository } })
          .then(
            (guid) => void acknowledged.push(guid),
            () => {
              refused += 1;
            },
          )
          .finally(() => sending.delete(sent));
        sending.add(sent);
        await delay(1_000 / PER_SECOND);
      }
      await Promise.all(sending);
    };
    /** When the other process answered reads. */
    const good: number[] = [];
    const read = async () => {
      while (!isOver) {
        const answer = await fetch(other + issue, { headers });
        await answer.arrayBuffer();
        if (answer.ok) good.push(performance.now());
        await delay(20);
      }
    };
    const working = Promise.all([send(), read()]);
    await until("some were acknowledged", () => acknowledged.length >= PER_SECOND * SECONDS_BEFORE);
    address.lead(null);
    await primary.kill();
    const killedAt = performance.now();
    await promote(heir);
    address.lead(heir.url);
    const promotedMs = performance.now() - killedAt;
    await until("reads are answered again", () => (good.at(-1) ?? 0) > killedAt + promotedMs);
    const after = acknowledged.length;
    await until("more were acknowledged", () => acknowledged.length >= after + PER_SECOND);
    isOver = true;
    await working;
    const first = good.find((at) => at > killedAt + promotedMs) ?? Number.NaN;
    let missing: string[] = [];
    await eventually(async () => {
      await untilIdle(world.ctx);
      const rows = await world.ctx.db.query<{ guid: string }>(sql`select guid from deliveries`);
      const there = new Set(rows.map(({ guid }) => guid));
      missing = acknowledged.filter((guid) => !there.has(guid));
      expect(missing).toEqual([]);
    });
    printFigures("failover", {
      acknowledged: acknowledged.length,
      missing: missing.length,
      refused,
      promotedMs: Math.round(promotedMs),
      answeredMs: Math.round(first - killedAt - promotedMs),
      gapMs: Math.round(first - Math.max(...good.filter((at) => at <= killedAt))),
    });
    await eventually(async () =>
      expect(await standingsOf(other)).toMatchObject([{ leftOut: expect.stringMatching(/takes writes itself/) }]),
    );
  },
  600_000,
);

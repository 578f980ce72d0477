/** A real Prometheus reads a live mirror: `npm run proofs alerts`. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { sql } from "../../db/sql.ts";
import { openHeartbeat } from "../../src/operations/heartbeat.ts";
import { renameUser } from "../../src/simulator/changes/users.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { CredentialRejectedError } from "../../src/upstream/protocol/errors.ts";
import { deliverTo } from "../receiver/receiver-world.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { type OwnStores, openOwnStores } from "../support/own-stores.ts";
import { until } from "../support/patience.ts";
import { findPrometheus, openPrometheus, type Prometheus } from "../support/prometheus.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const OPERATOR = "the-operators-token";
const alerts = readFileSync(new URL("../../deploy/prometheus/alerts.yaml", import.meta.url), "utf8");
const dashboard = JSON.parse(readFileSync(new URL("../../deploy/grafana/dashboard.json", import.meta.url), "utf8"));
const program = process.env.ALERTS ? await findPrometheus() : null;
/** Tain tries a credential that upstream rejected again after this time. */
const REJECTED_MS = 5 * 60_000;
const DAY_MS = 86_400_000;
const { signal } = new AbortController();

/** How the cause of an alert is played. `beside` is repeated until the alert fires. */
interface Play {
  play?: () => Promise<unknown>;
  beside?: () => Promise<unknown>;
  end?: () => Promise<unknown>;
}

describe.skipIf(program === null)("with a Prometheus (skipped without ALERTS: a proof)", () => {
  let stores: OwnStores;
  let world: TestWorld;
  let prometheus: Prometheus;
  let scheduler: ReturnType<typeof openHeartbeat>;
  let repositoryId: number;
  let asked = 0;
  const ended: string[] = [];
  beforeAll(async () => {
    stores = await openOwnStores();
    await migrate(stores.postgres.url);
    world = await openWorld({
      env: { OPERATOR_TOKEN: OPERATOR, DATABASE_URL: stores.postgres.url, REDIS_URL: stores.redis.url },
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 4, repositories: 1, issues: 12, pulls: 3 }),
    });
    world.ctx.metrics.observeProcess();
    scheduler = openHeartbeat(world.ctx, "scheduler");
    await world.mirror(world.first);
    await world.listen(world.first);
    const [owner = "", name = ""] = world.first.split("/");
    repositoryId = world.simulator.world.repositoryByName(owner, name)?.repository.id ?? 0;
    prometheus = await openPrometheus(program ?? "", world.url, OPERATOR);
  }, LONG_TEST_MS);
  afterAll(async () => {
    await prometheus?.[Symbol.asyncDispose]();
    await scheduler?.close();
    await world?.[Symbol.asyncDispose]();
    await stores?.[Symbol.asyncDispose]();
    printFigures("alerts", { known: [...alerts.matchAll(/alert: /g)].length, ended: ended.length });
  });

  const read = (page: number) => world.get(`/repos/${world.first}/issues?page=${page}&per_page=2`);
  const deliver = (payload: unknown, secret = "test-webhook-secret") => deliverTo(world.url, { payload, secret });
  const db = (text: ReturnType<typeof sql>) => world.ctx.db.query(text);
  const audited = (repair: boolean) => audit(world.ctx, { repositoryId, repair, signal });
  /**
   * Asks upstream for a page of its own each time, so that upstream cannot answer "unchanged" and the request is
   * charged.
   */
  const askUpstream = () =>
    world.ctx.upstream.get(`/repos/${world.first}/issues?per_page=1&page=${++asked}`, { priority: "caller" });

  test("each panel of the dashboard has data", { timeout: LONG_TEST_MS }, async () => {
    const expressions: string[] = dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
      targets.map(({ expr }) => expr),
    );
    // The expressions look at windows of minutes. A rate needs two scrapes within its window.
    let page = 0;
    const absent = async () => {
      const found: string[] = [];
      for (const one of expressions) if ((await prometheus.query(one)).length === 0) found.push(one);
      return found;
    };
    let left = expressions;
    await until("all have data", async () => {
      page += 1;
      await read(page);
      await world.get("/repos/no/body");
      await fetch(`${world.simulator.url}/repos/${world.first}/issues`, {
        method: "POST",
        headers: { authorization: `token ${UPSTREAM_TOKEN}`, "user-agent": "test" },
        body: JSON.stringify({ title: `Issue ${page}` }),
      });
      await addSelections(world.ctx, ["octo/absent"]);
      await resolveSelections(world.ctx);
      await audited(true);
      left = await absent();
      return left.length === 0;
    }).catch(() => {});
    await removeSelection(world.ctx, "octo/absent", { purge: false });
    expect(left).toEqual([]);
  });

  // The plays that move the mirror's clock come last, because the windows of upstream's quota go by the real clock.
  const plays: Record<string, Play> = {
    TainQuotaEndsEarly: {
      beside: () => Promise.all(Array.from({ length: 10 }, askUpstream)),
    },
    TainProcessDown: {
      play: () => scheduler.close(),
      end: async () => {
        scheduler = openHeartbeat(world.ctx, "scheduler");
      },
    },
    TainErrors: {
      play: () => db(sql`alter table issues rename to issues_of_before`),
      beside: () => Promise.all(Array.from({ length: 5 }, (_, page) => read(100 + page))),
      end: () => db(sql`alter table issues_of_before rename to issues`),
    },
    TainDrift: {
      // Upstream sends no webhook of a user's new name, and no list shows it.
      play: async () => {
        const [row] = await db(sql`select user_id::float8 as id from issues order by number limit 1`);
        const author = [...world.simulator.world.users.values()].find(({ id }) => id === row?.id);
        if (!author) throw new Error("Upstream does not know who opened its issue");
        renameUser(world.simulator.world, author, "renamed-in-secret");
        await audited(true);
      },
      end: () => audited(true),
    },
    TainDeliveriesInvalid: {
      play: () => deliver({ action: "opened", issue: {}, repository: { id: repositoryId, full_name: world.first } }),
    },
    TainWebhooksRefused: { beside: () => deliver({}, "not-the-right-secret") },
    TainDeliveriesWait: {
      play: () =>
        db(sql`insert into deliveries (hook_id, guid, event, payload, received_at)
          values (1, 'waits', 'issues', '{}', ${new Date(world.ctx.clock.now().getTime() - 600_000)})`),
      end: () => db(sql`delete from deliveries where guid = 'waits'`),
    },
    TainMarksLate: {
      play: () =>
        db(sql`insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
          select 'issue', repository_id, number, ${new Date(world.ctx.clock.now().getTime() - 3_600_000)},
            ${new Date(world.ctx.clock.now().getTime() - 3_600_000)} from issues where not is_pull_request limit 1`),
      end: () => world.settleMarks(),
    },
    TainProblems: {
      play: async () => {
        await addSelections(world.ctx, ["octo/absent"]);
        await resolveSelections(world.ctx);
      },
      end: () => removeSelection(world.ctx, "octo/absent", { purge: false }),
    },
    TainTargetDisabled: {
      play: () =>
        db(sql`insert into targets (scope, scope_id, made_by, url, content_type, insecure_ssl, events, active, created_at,
            updated_at, disabled_at, problem)
          values ('everything', 0, 'operator', 'https://ci.example/', 'json', false, '{}', true, now(), now(), now(), 'gone')`),
      end: () => db(sql`delete from targets`),
    },
    TainMirrorStale: {
      play: async () => world.advance(2_400_000),
      end: async () => {
        await world.catchUp();
      },
    },
    TainEventLoopHeld: {
      beside: async () => {
        for (const until = performance.now() + 900; performance.now() < until; );
      },
    },
    TainCredentialRefused: {
      play: async () => {
        world.simulator.tokens.expire(UPSTREAM_TOKEN);
        await expect(askUpstream()).rejects.toThrow(CredentialRejectedError);
        // After this time the token may be tried again, and nothing has been asked with it yet.
        world.advance(REJECTED_MS);
      },
      end: async () => {
        world.simulator.tokens.expire(UPSTREAM_TOKEN, Date.now() + DAY_MS);
        await askUpstream();
      },
    },
    TainStoreDown: { play: () => stores.postgres.stop(), end: () => stores.postgres.start() },
  };

  test.each(Object.entries(plays))(
    "%s fires when its cause is played, and ends with it",
    { timeout: LONG_TEST_MS },
    async (name, { play, beside, end }) => {
      await play?.();
      await until(`${name} fires`, async () => {
        await beside?.();
        // `beside` has to run between any two of Prometheus' readings.
        await delay(beside ? 50 : 500);
        return (await prometheus.firing()).has(name);
      });
      await end?.();
      await until(`${name} ends`, async () => !(await prometheus.firing()).has(name));
      ended.push(name);
    },
  );

  test("every alert is played", () => {
    const named = [...alerts.matchAll(/alert: (\w+)/g)].map(([, name = ""]) => name);
    expect(Object.keys(plays).sort()).toEqual(named.sort());
  });
});

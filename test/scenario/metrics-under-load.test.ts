/** A real Prometheus reads a mirror under load: `npm run proofs metrics-under-load`. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { findPrometheus, openPrometheus } from "../support/prometheus.ts";
import { openWorld } from "../support/world.ts";

const OPERATOR = "the-operators-token";
const MINUTES = Number(process.env.METRICS_MINUTES ?? 0);
const READERS = 4;
const PAUSE_MS = 40;
const CHANGES_PER_SECOND = 2;
const STEP_SECONDS = 15;
const dashboard = JSON.parse(readFileSync(new URL("../../deploy/grafana/dashboard.json", import.meta.url), "utf8"));
const queries: string[] = dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
  targets.map(({ expr }) => expr),
);
const program = MINUTES > 0 ? await findPrometheus() : null;

test.skipIf(program === null)(
  "each query of the dashboard has data under a mixed load (skipped without METRICS_MINUTES: a proof)",
  { timeout: MINUTES * 60_000 + 300_000 },
  async () => {
    await using world = await openWorld({
      env: { OPERATOR_TOKEN: OPERATOR },
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 4, repositories: 2, issues: 120, pulls: 30 }),
    });
    world.ctx.metrics.observeProcess();
    await world.mirror(world.first);
    await world.listen(world.first);
    // From here on programs of their own do the work.
    world.stop();
    await using programs = new AsyncDisposableStack();
    const start = async (file: string) => {
      const env = { ...world.env, OPERATOR_TOKEN: OPERATOR, METRICS_PORT: "0", LOG_LEVEL: "info" };
      const one = startProgram(file, env);
      programs.defer(async () => expect(await one.stop()).toBe(0));
      return String((await one.said("Metrics are served")).address);
    };
    const others = await Promise.all(["workers/main.ts", "workers/scheduler.ts"].map(start));
    await using prometheus = await openPrometheus(program ?? "", [world.url, ...others], OPERATOR);

    await until("each process is read", async () => (await prometheus.query("up == 1")).length === 3);
    const begun = new Date();
    const end = begun.getTime() + MINUTES * 60_000;
    const statuses = new Map<number, number>();
    const read = async (path: string, init: RequestInit = {}, token = world.token) => {
      const answer = await fetch(world.url + path, {
        ...init,
        headers: { authorization: `token ${token}`, "user-agent": "reader/1" },
      });
      await answer.arrayBuffer();
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    };
    const repository = `/repos/${world.first}`;
    const query = "{ viewer { login } rateLimit { remaining } }";
    const reads = [
      (nth: number) => read(`${repository}/issues?state=all&per_page=10&page=${(nth % 12) + 1}`),
      (nth: number) => read(`${repository}/issues/${(nth % 100) + 1}`),
      () => read(`${repository}/labels`),
      () => read("/graphql", { method: "POST", body: JSON.stringify({ query }) }),
      () => read("/repos/no/body"),
      (nth: number) => (nth % 25 === 0 ? read(`${repository}/commits`, {}, UPSTREAM_TOKEN) : read(repository)),
    ];
    const reader = async (first: number) => {
      for (let nth = first; Date.now() < end; nth++) {
        await reads[nth % reads.length]?.(nth);
        await delay(PAUSE_MS);
      }
    };
    // The absent repository is a problem. The other one is copied meanwhile.
    await addSelections(world.ctx, ["octo/absent", `${world.first.split("/")[0]}/*`]);
    await resolveSelections(world.ctx);
    world.simulator.startLive({ ratePerSecond: CHANGES_PER_SECOND, seed: 3 });
    await Promise.all(Array.from({ length: READERS }, (_, nth) => reader(nth * 17)));
    const changes = world.simulator.stopLive();

    const over = new Date();
    const without: string[] = [];
    let series = 0;
    for (const one of queries) {
      const courses = await prometheus.range(one, new Date(begun.getTime() + 20_000), over, STEP_SECONDS);
      const told = courses.filter(({ values }) => values.some(([, value]) => Number.isFinite(Number(value))));
      series += told.length;
      if (told.length === 0) without.push(one);
    }
    const seconds = Math.floor((over.getTime() - begun.getTime()) / 1_000);
    const [missed] = await prometheus.query(`sum(count_over_time(up[${seconds}s]) - sum_over_time(up[${seconds}s]))`);
    const targets = await prometheus.query("up");
    const [settled] = await world.ctx.db.query<{ applied: number }>(
      sql`select count(*)::int as applied from deliveries where status = 'applied'`,
    );
    printFigures("metrics under load", {
      minutes: seconds / 60,
      queries: queries.length,
      without: without.length,
      series,
      missed: Number(missed?.value[1]),
      answers: [...statuses.values()].reduce((sum, one) => sum + one, 0),
      statuses: Object.fromEntries(statuses),
      changes,
      applied: settled?.applied,
    });
    expect(without).toEqual([]);
    expect(targets).toHaveLength(3);
    expect(Number(missed?.value[1])).toBe(0);
    expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
  },
);

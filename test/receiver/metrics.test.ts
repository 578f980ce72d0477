import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { askAt } from "../support/asking.ts";
import { NOWHERE, UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// The figures about its work that a web process or a worker gives, in Prometheus' text format.

const OPERATOR = "the-operators-token";
let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({
    env: { OPERATOR_TOKEN: OPERATOR },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 4, repositories: 2, issues: 12 }),
  });
  await world.mirror(world.first);
  await world.listen(world.first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

async function scrape(): Promise<Sample[]> {
  const answer = await askAt(world.url, "GET", "/-/metrics", { token: OPERATOR });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  return answer.text.split("\n").flatMap((line) => {
    const [, name = "", labels = "", value = ""] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text] as const);
    return name === "" ? [] : [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

const sumOf = (samples: Sample[], name: string, labels: Record<string, string> = {}) =>
  samples
    .filter((one) => one.name === name && Object.entries(labels).every(([label, text]) => one.labels[label] === text))
    .reduce((sum, { value }) => sum + value, 0);

test("the figures are for those who show the operator's token, and to others there is no such page", async () => {
  for (const token of [null, world.token, "wrong"]) {
    const { status, text } = await askAt(world.url, "GET", "/-/metrics", { token });
    expect(status).not.toBe(200);
    expect(text).not.toContain("tain_");
  }
  expect(sumOf(await scrape(), "tain_store_up", { store: "postgres" })).toBe(1);
});

test("requests are counted by route, status, caller and source, also those that are answered again as they were", async () => {
  const path = `/repos/${world.first}/issues?per_page=2`;
  const route = "/repos/*/*/issues";
  const before = await scrape();
  const ask = (at: string, token: string | null, headers: Record<string, string> = {}) =>
    askAt(world.url, "GET", at, { token, headers: { "user-agent": "Watcher/1.2 (test)", ...headers } });
  let etag = "";
  for (let time = 0; time < 5; time++) etag = (await ask(path, world.token)).headers.get("etag") ?? "";
  expect((await ask(path, world.token, { "if-none-match": etag })).status).toBe(304);
  await ask("/repos/no/body/issues", null);
  await ask(`/repos/${world.first}/commits`, world.token);
  await ask("/no/such/route", world.token);
  await askAt(world.url, "POST", "/graphql", { token: world.token, body: '{"query":"{ viewer { login } }"}' });
  const after = await scrape();
  const more = (labels: Record<string, string>, name = "tain_api_requests_total") =>
    sumOf(after, name, labels) - sumOf(before, name, labels);
  expect(more({ route, status: "200", caller: "own" })).toBe(5);
  expect(more({ route, status: "200", source: "kept" })).toBeGreaterThanOrEqual(2);
  expect(more({ route, status: "304", source: "kept" })).toBe(1);
  expect(more({ route, status: "404", caller: "anonymous" })).toBe(1);
  expect(more({ route: "/repos/*/*/commits", caller: "own" })).toBe(1);
  expect(more({ route: "other", caller: "own" })).toBe(1);
  expect(more({ route: "/graphql", status: "200", caller: "own", source: "mirror" })).toBe(1);
  expect(more({ agent: "Watcher" }, "tain_api_agent_requests_total")).toBe(9);
  expect(more({ route }, "tain_api_request_duration_seconds_count")).toBeGreaterThanOrEqual(2);
});

test("programs beyond the fiftieth, and paths that nobody serves, add no series", async () => {
  for (let nth = 0; nth < 80; nth++)
    await askAt(world.url, "GET", `/nowhere/${nth}`, {
      token: world.token,
      headers: { "user-agent": `agent-${nth}/1` },
    });
  const samples = await scrape();
  const of = (name: string, label: string) =>
    new Set(samples.filter((one) => one.name === name).map(({ labels }) => labels[label]));
  const agents = of("tain_api_agent_requests_total", "agent");
  expect(agents.size).toBeLessThanOrEqual(51);
  expect(agents).toContain("other");
  expect([...of("tain_api_requests_total", "route")].filter((route) => route?.includes("nowhere"))).toEqual([]);
});

test("a delivery, the work for it, upstream's quota and the repositories are told", async () => {
  const before = await scrape();
  const body = '{"title":"Counted"}';
  const written = await askAt(world.simulator.url, "POST", `/repos/${world.first}/issues`, {
    token: UPSTREAM_TOKEN,
    body,
  });
  expect(written.status).toBe(201);
  await world.settle();
  const after = await scrape();
  const more = (name: string, labels: Record<string, string> = {}) =>
    sumOf(after, name, labels) - sumOf(before, name, labels);
  expect(more("tain_deliveries_received_total", { outcome: "accepted" })).toBeGreaterThanOrEqual(1);
  expect(more("tain_deliveries_settled_total", { outcome: "applied" })).toBeGreaterThanOrEqual(1);
  expect(more("tain_delivery_duration_seconds_count")).toBeGreaterThanOrEqual(1);
  expect(sumOf(after, "tain_jobs_total", { outcome: "done" })).toBeGreaterThanOrEqual(1);
  expect(sumOf(after, "tain_repositories", { state: "live" })).toBeGreaterThanOrEqual(1);
  expect(sumOf(after, "tain_quota_remaining", { bucket: "core" })).toBeGreaterThan(0);
  expect(sumOf(after, "tain_upstream_requests_total", { class: "backfill", status: "200" })).toBeGreaterThan(0);
  expect(sumOf(after, "tain_upstream_charged_total", { route: "/repos/*/*/issues" })).toBeGreaterThan(0);
  expect(sumOf(after, "tain_postgres_connections", { pool: "reads" })).toBeGreaterThanOrEqual(1);
});

test("a failure counts by the status that its caller is told", async () => {
  const away = await world.openSibling({ DATABASE_URL: NOWHERE.database });
  const path = `/repos/${world.first}/issues`;
  expect((await askAt(away, "GET", path, { token: null })).status).toBe(503);
  expect(
    (await askAt(away, "POST", "/graphql", { token: world.token, body: '{"query":"{ viewer { login } }"}' })).status,
  ).toBe(503);
  expect((await askAt(away, "GET", "/-/events", { token: world.token })).status).toBe(503);
  const { text } = await askAt(away, "GET", "/-/metrics", { token: OPERATOR });
  const failed = text.split("\n").filter((line) => /^tain_api_requests_total\{.*status="503"/.test(line));
  expect(failed.map((line) => /route="([^"]+)"/.exec(line)?.[1]).sort()).toEqual([
    "/-/events",
    "/graphql",
    "/repos/*/*/issues",
  ]);
});

describe("what is shipped for operators", () => {
  const alerts = readFileSync(new URL("../../deploy/prometheus/alerts.yaml", import.meta.url), "utf8");
  const dashboard = readFileSync(new URL("../../deploy/grafana/dashboard.json", import.meta.url), "utf8");
  const page = readFileSync(new URL("../../docs/monitoring.md", import.meta.url), "utf8");
  const namesIn = (text: string) =>
    new Set([...text.matchAll(/\btain_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|count|sum)$/, "")));

  test("names only figures that there are, and the page names each of them", async () => {
    await makeEvents(world.ctx);
    const { text } = await askAt(world.url, "GET", "/-/metrics", { token: OPERATOR });
    const declared = new Set([...text.matchAll(/^# TYPE (tain_\w+) /gm)].map(([, name = ""]) => name));
    for (const [what, shipped] of Object.entries({ alerts, dashboard }))
      expect([...namesIn(shipped).difference(declared)], what).toEqual([]);
    expect([...declared.symmetricDifference(namesIn(page))]).toEqual([]);
  });

  test("each alert stands on the page with what to do", () => {
    const named = [...alerts.matchAll(/alert: (\w+)/g)].map(([, name = ""]) => name);
    expect(named.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
    expect(new Set(named).size).toBe(named.length);
  });

  test("the dashboard is a document that Grafana imports: each panel asks something, and none lies on another", () => {
    const { panels } = JSON.parse(dashboard);
    const places = panels.map(({ gridPos: { x, y } }: { gridPos: { x: number; y: number } }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(places.length);
    for (const { title, targets } of panels) expect(targets.length, title).toBeGreaterThan(0);
  });

  const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;
  test.skipIf(!hasPromtool)(
    "Prometheus' own tool accepts the rules and the example (skipped where it is not installed)",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "tain-prometheus-"));
      const given = fileURLToPath(new URL("../../deploy/prometheus/", import.meta.url));
      try {
        cpSync(given, folder, { recursive: true });
        writeFileSync(join(folder, "operator-token"), OPERATOR);
        const { status, stdout, stderr } = spawnSync("promtool", ["check", "config", join(folder, "prometheus.yaml")], {
          encoding: "utf8",
        });
        expect(status, stdout + stderr).toBe(0);
        expect(stdout).toContain(`${alerts.match(/alert: /g)?.length} rules found`);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});

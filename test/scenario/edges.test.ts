/**
 * A web process near its readers, over a replica: what it shows, what it passes on to the centre, and what still works
 * without the centre.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ConfigError, parseConfig } from "../../src/config.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openStores } from "../../src/stores.ts";
import { inherited, testEnvironment, UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { openForwarder } from "../support/forwarder.ts";
import { eventually, until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { openReplicated } from "../support/replicas.ts";
import { openWorld } from "../support/world.ts";
import { asOperator, type Body } from "./replica-world.ts";

/**
 * How many writes there are at the centre while the edge is cut off, and again at the edge afterwards. `npm run proofs
 * edges` has more.
 */
const WRITES = Number(process.env.WRITES ?? 2);
const CUTS = Number(process.env.CUTS ?? 1);

interface Told {
  status: number;
  body: Body;
  headers: Headers;
  tookMs: number;
}

async function openEdge() {
  const resources = new AsyncDisposableStack();
  onTestFinished(() => resources.disposeAsync());
  const servers = resources.use(await openReplicated({ replicas: 1 }));
  const { primary } = servers;
  const [replica] = servers.replicas;
  if (!replica) throw new Error("There is no replica");
  const world = resources.use(
    await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 5, pulls: 2 }),
      env: {
        DATABASE_URL: primary.url,
        RATE_LIMIT_USER: "1000000",
        RATE_LIMIT_SEARCH_USER: "1000000",
        CATCH_UP_INTERVAL: "333ms",
        PUBLIC_URL: "http://tain.test",
      },
    }),
  );
  await world.mirror(world.first);
  // All addresses by which the edge reaches the centre.
  const addresses = { postgres: primary.url, api: world.url, redis: world.env.REDIS_URL ?? "" };
  const postgres = resources.use(await openForwarder(addresses.postgres));
  const api = resources.use(await openForwarder(addresses.api));
  const redis = resources.use(await openForwarder(addresses.redis));
  const [told] = await replica.query<{ to: string }>("select current_setting('primary_conninfo') as to");
  const port = new URL(postgres.through(addresses.postgres)).port;
  await replica.set("primary_conninfo", (told?.to ?? "").replace(/port=\d+/, `port=${port}`));
  const edge = startProgram("src/web.ts", {
    ...world.env,
    DATABASE_URL: replica.url,
    REDIS_URL: redis.through(addresses.redis),
    EDGE_OF: api.through(addresses.api),
    OPERATOR_TOKEN: "operator-token-of-this-test",
    LOG_LEVEL: "info",
  });
  const url = String((await edge.said("Listening")).address);
  const headers = { authorization: `token ${world.token}`, "user-agent": "test" };
  const ask = async (at: string, path: string, init: RequestInit = {}): Promise<Told> => {
    const begun = performance.now();
    const answer = await fetch(at + path, { ...init, headers: { ...headers, ...init.headers } });
    const text = await answer.text();
    const body: Body = text === "" ? null : JSON.parse(text);
    return { status: answer.status, body, headers: answer.headers, tookMs: performance.now() - begun };
  };
  return {
    servers,
    replica,
    world,
    url,
    atEdge: (path: string, init?: RequestInit) => ask(url, path, init),
    atCentre: (path: string, init?: RequestInit) => ask(world.url, path, init),
    cut() {
      for (const link of [postgres, api, redis]) link.cut();
    },
    heal() {
      postgres.lead(addresses.postgres);
      api.lead(addresses.api);
      redis.lead(addresses.redis);
    },
  };
}

const sending = (method: string, body: object): RequestInit => ({ method, body: JSON.stringify(body) });
const confirmedAt = ({ headers }: Told) => Date.parse(headers.get("x-tain-confirmed-at") ?? "");

test(
  "an edge shows what its replica has, says how old that is, and comes back by itself",
  async () => {
    const edge = await openEdge();
    const { world, replica, servers, atEdge, atCentre } = edge;
    const issue = `/repos/${world.first}/issues/1`;
    const list = `/repos/${world.first}/issues?state=all&per_page=100`;
    const [owner, name] = world.first.split("/");
    const query = `{ repository(owner: "${owner}", name: "${name}") { issues(first: 3) { nodes { number title } } } }`;
    const reads: [string, RequestInit?][] = [
      [issue],
      [list],
      [`/repos/${world.first}`],
      [`${issue}/comments`],
      ["/user"],
      // The edge has to ask upstream who owns this token.
      [issue, { headers: { authorization: `token ${UPSTREAM_TOKEN}` } }],
      ["/graphql", sending("POST", { query })],
      [`/search/issues?q=${encodeURIComponent(`repo:${world.first} is:issue`)}`],
      ["/graphql", sending("POST", { query: "{ viewer { login repositories(first: 3) { nodes { name } } } }" })],
    ];
    const answeredBy = async (by: string): Promise<number> => {
      const text = await (await fetch(`${edge.url}/-/metrics`, asOperator)).text();
      return Number(new RegExp(`^tain_edge_answers_total\\{by="${by}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0);
    };
    const retitle = (at: typeof atEdge, title: string) => at(issue, sending("PATCH", { title }));

    // Before the cut: edge and centre show the same, and a caller who writes at the edge reads the write there.
    for (const [path, init] of reads)
      await eventually(async () => {
        const [there, here] = [await atCentre(path, init), await atEdge(path, init)];
        expect(here, path).toMatchObject({ status: 200, body: there.body });
        expect(here.headers.get("etag"), path).toBe(there.headers.get("etag"));
      });
    expect(await answeredBy("replica")).toBeGreaterThanOrEqual(reads.length);
    expect(await answeredBy("centre")).toBe(0);
    for (let at = 0; at < WRITES; at++) {
      expect(await retitle(atEdge, `before ${at}`)).toMatchObject({ status: 200, body: { title: `before ${at}` } });
      expect(await atEdge(issue)).toMatchObject({ status: 200, body: { title: `before ${at}` } });
    }
    // Strangers are not told how much the primary writes, here or there.
    for (const at of [atCentre, atEdge])
      for (const headers of [{}, { "x-tain-edge": "1" }, { "x-tain-era": "00000000-0000-0000-0000-000000000000" }])
        expect((await at("/-/position", { headers })).body).not.toHaveProperty("lsn");
    // The centre answers, or refuses, what nobody mirrors.
    for (const path of [`/repos/${world.first}/contents/README.md`, "/nothing/of/the/kind"])
      expect(await atEdge(path)).toMatchObject({ status: (await atCentre(path)).status });
    // While the replica is late, the edge reads at the centre.
    await replica.set("recovery_min_apply_delay", "1h");
    for (let at = 0; at < WRITES; at++) {
      expect((await retitle(atEdge, `late ${at}`)).status).toBe(200);
      expect(await atEdge(issue)).toMatchObject({ status: 200, body: { title: `late ${at}` } });
    }
    await replica.set("recovery_min_apply_delay", "0");
    const byReplica = await answeredBy("replica");
    await eventually(async () => {
      expect((await atEdge(issue)).body.title).toBe(`late ${WRITES - 1}`);
      expect(await answeredBy("replica")).toBeGreaterThan(byReplica);
    });

    // During the cut: reads go on, and no answer says that it is fresher than it is.
    const figures = { cuts: 0, writes: 0, reads: 0, refused: 0, slowestMs: 0, healedAfterMs: 0 };
    /** For each title, when it was replaced at the centre. */
    const endedAt = new Map<string, number>();
    const look = async () => {
      for (const [path, init] of reads) {
        const read = await atEdge(path, init);
        figures.reads += 1;
        figures.slowestMs = Math.max(figures.slowestMs, Math.round(read.tookMs));
        expect(read.status, path).toBe(200);
      }
      const read = await atEdge(issue);
      expect(read.status).toBe(200);
      expect(confirmedAt(read)).toBeLessThan(endedAt.get(read.body.title) ?? Number.POSITIVE_INFINITY);
      return read;
    };
    const refused = {
      status: 503,
      body: { message: expect.stringContaining("the centre, which takes writes"), status: "503" },
    };
    const mutation = `mutation { updateIssue(input: {id: "x", title: "y"}) { issue { number } } }`;
    let title = `late ${WRITES - 1}`;
    for (let cut = 0; cut < CUTS; cut++) {
      const before = title;
      const count = (await atCentre(list)).body.length;
      edge.cut();
      for (let at = 0; at < WRITES; at++) {
        endedAt.set(title, Date.now());
        title = `cut ${cut}, away ${at}`;
        expect((await retitle(atCentre, title)).status).toBe(200);
        await world.catchUp();
        expect(await look()).toMatchObject({ body: { title: before } });
      }
      expect(confirmedAt(await atCentre(issue))).toBeGreaterThan(endedAt.get(before) ?? 0);
      await eventually(async () => expect((await atEdge(issue)).headers.get("warning")).toContain("110 tain"));
      const fresh = await atEdge(`${issue}?fresh=true`);
      expect(fresh).toMatchObject({ status: 200, body: { title: before } });
      expect(fresh.headers.get("warning")).toContain(
        '111 tain "Not refreshed: this process reads from a replica alone',
      );
      for (const [path, body] of [
        [`/repos/${world.first}/issues`, { title: "refused" }],
        ["/graphql", { query: mutation }],
      ] as const) {
        expect(await atEdge(path, sending("POST", body))).toMatchObject(refused);
        figures.refused += 1;
      }
      expect(await (await fetch(`${edge.url}/-/ready`, asOperator)).json()).toEqual({ ready: true });
      await look();

      // After the cut: everything recovers by itself.
      const healed = performance.now();
      edge.heal();
      await eventually(async () => expect((await look()).body.title).toBe(title));
      figures.healedAfterMs = Math.max(figures.healedAfterMs, Math.round(performance.now() - healed));
      expect((await atCentre(list)).body.length).toBe(count);
      // Until a caller asks for a write, the edge does not check whether the centre is back.
      await eventually(async () => expect((await retitle(atEdge, `cut ${cut}, healed`)).status).toBe(200));
      for (let at = 0; at < WRITES; at++) {
        title = `cut ${cut}, after ${at}`;
        expect((await retitle(atEdge, title)).status).toBe(200);
        expect((await atEdge(issue)).body.title).toBe(title);
      }
      await world.catchUp();
      await eventually(async () =>
        expect(confirmedAt(await atEdge(issue))).toBeGreaterThanOrEqual(confirmedAt(await atCentre(issue))),
      );
      figures.cuts += 1;
      figures.writes += 2 * WRITES;
    }
    printFigures("edges", figures);

    // Without its replica the edge asks the centre. A replica that was promoted no longer counts as one.
    await replica.kill();
    for (const [path, init] of reads) expect((await atEdge(path, init)).status, path).toBe(200);
    await replica.start();
    await servers.promote(replica);
    await until("the edge is not ready", async () => (await fetch(`${edge.url}/-/ready`)).status === 503);
    expect(await atEdge(issue)).toMatchObject({ status: 200, body: { title } });
  },
  CUTS * 120_000,
);

test("an edge has no worker, no scheduler, and no replicas beside its own", async () => {
  const env = {
    ...testEnvironment({
      database: "postgres://a/b",
      redis: { url: "redis://a", prefix: "{t}" },
      upstream: "http://a",
    }),
    EDGE_OF: "https://tain.example.com",
  };
  await using resources = new AsyncDisposableStack();
  for (const [name, program] of [
    ["worker", "workers/main.ts"],
    ["scheduler", "workers/scheduler.ts"],
  ] as const) {
    const started = promisify(execFile)(process.execPath, [program], { env: { ...inherited, ...env } });
    const stderr = `Cannot start:\n  EDGE_OF is set: the ${name} belongs to the centre, where it is not\n`;
    await expect(started).rejects.toMatchObject({ code: 1, stderr });
  }
  // The name shows in logs only.
  await expect(openStores(parseConfig(env), resources, { name: "any", isCentral: true })).rejects.toThrow(ConfigError);
  await expect(openStores(parseConfig(env), resources, { name: "worker" })).resolves.toHaveProperty("db");
  expect(() => parseConfig({ ...env, DATABASE_REPLICA_URLS: "postgres://c/d" })).toThrow(
    /DATABASE_REPLICA_URLS is set, and EDGE_OF/,
  );
});

/** Upgrades under load, with an earlier version beside this one: `npm run proofs upgrade`. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Agent, request } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { sendOn } from "../../bench/mixed/deliveries.ts";
import { Problems } from "../../bench/mixed/problems.ts";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { openBalancer } from "../support/balancer.ts";
import { inherited, OWNER, testEnvironment, UPSTREAM_TOKEN } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { type Program, startProgramAt } from "../support/program.ts";

const run = promisify(execFile);
const checkout = fileURLToPath(new URL("../../", import.meta.url));
/** The commit that was released as 0.3.0. It runs with the packages of this checkout. */
const RELEASE_0_3_0 = "1af5b60b";
/** How long each part of the way takes. */
const SECONDS = Number(process.env.UPGRADE_SECONDS ?? 10);
const PER_SECOND = Number(process.env.UPGRADE_RATE ?? 100);
const SECRET = "test-webhook-secret";

test.skipIf(!process.env.UPGRADE).each(["0.3.0", "this version"])(
  "an upgrade from 0.3.0 and the way back, in a database that %s made, lose no delivery and no read (skipped without UPGRADE: a proof)",
  async (maker) => {
    await using resources = new AsyncDisposableStack();
    const earlier = await openWorktree(RELEASE_0_3_0);
    const { url: database } = await openTestDatabase("template0");
    const balancer = resources.use(await openBalancer());
    const simulator = resources.use(await openSimulator());
    generateWorld(simulator.world, { seed: 5, repositories: 2, issues: 60, pulls: 6 });
    simulator.tokens.create({ token: UPSTREAM_TOKEN, login: OWNER, repositories: "all", write: true });
    const env = testEnvironment(
      { database, redis: testRedis(), upstream: simulator.url },
      {
        LOG_LEVEL: "warn",
        PUBLIC_URL: balancer.url,
        RATE_LIMIT_USER: "0",
        TAIN_HOME: "/nonexistent/tain",
        WEBHOOK_SECRET: SECRET,
      },
    );
    const tain = async (...args: string[]) =>
      (await run(process.execPath, [join(earlier, "src/cli/main.ts"), ...args], { env: { ...inherited, ...env } }))
        .stdout;
    const migrate = async (place: string) =>
      await run(process.execPath, [join(place, "db/migrate.ts")], { env: { ...inherited, ...env } });
    if (maker === "this version") await migrate(checkout);
    await migrate(earlier);
    const names = [...simulator.world.repositories.values()]
      .filter(({ fork }) => !fork)
      .map((one) => simulator.world.fullName(one));

    const fleet = new Fleet(env, balancer);
    await fleet.open(earlier);
    await tain("add", ...names);
    await tain("hooks", "register");
    const made = JSON.parse(await tain("token", "create", "--json")) as { token: string };
    const db = openDatabase(database, { maxConnections: 2, applicationName: "test" });
    resources.defer(() => db.close());
    await until("all is live", async () => {
      const rows = await db.query<{ state: string }>(sql`select state from repository_syncs`);
      return rows.length === names.length && rows.every(({ state }) => state === "live");
    });

    const problems = new Problems();
    const ending = new AbortController();
    const sending = sendOn({
      ctx: { db },
      upstream: simulator.url,
      webhooks: `${balancer.url}/webhooks`,
      secret: SECRET,
      perSecond: PER_SECOND,
      changesPerSecond: 10,
      problems,
      signal: ending.signal,
    });
    const reading = readOn({ url: balancer.url, names, token: made.token, problems, signal: ending.signal });
    const watching = fleet.watch(problems, ending.signal);
    const during: string[] = [];
    const part = async (name: string, work: () => Promise<unknown>) => {
      reading.time.part = name;
      const begun = performance.now();
      await work();
      await delay(SECONDS * 1_000);
      const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
      during.push(`${name}: ${seconds} s, the machine's load ${loadavg()[0]?.toFixed(1)}`);
    };
    await part("before", async () => {});
    await part("migrating, and the old beside it", () => migrate(checkout));
    await part("to the new", () => fleet.roll(checkout));
    await part("back to the old", () => fleet.roll(earlier));
    await part("to the new again", () => fleet.roll(checkout));
    ending.abort();
    const sent = await sending;
    const reads = await reading.ended;
    await watching;
    await until("every delivery is settled", async () => {
      const [row] = await db.query<{ pending: number }>(
        sql`select count(*)::int as pending from deliveries where status = 'pending'`,
      );
      return row?.pending === 0;
    });
    const failed = await db.query<{ reason: string; count: number }>(
      sql`select reason, count(*)::int as count from deliveries where status = 'failed' group by reason`,
    );
    printFigures("upgrade", {
      maker,
      deliveries: sent.live + sent.repeated,
      perSecond: PER_SECOND,
      failed: failed.reduce((sum, { count }) => sum + count, 0),
      reads: reads.count,
      slowestMs: Math.round(reads.slowestMs),
      slowest: reads.slowest,
      p99Ms: Math.round(reads.p99Ms),
      problems: Object.values(problems.counts).reduce((sum, count) => sum + count, 0),
      parts: during,
    });
    expect({ problems: problems.sentences, failed, said: fleet.refusals }).toEqual({
      problems: [],
      failed: [],
      said: [],
    });
    await fleet.stop();
  },
  15 * 60_000,
);

/** The checkout of an earlier version, with this one's packages. */
async function openWorktree(commit: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tain-earlier-"));
  const place = join(folder, "tain");
  await run("git", ["-C", checkout, "worktree", "add", "--detach", "--quiet", place, commit]);
  onTestFinished(async () => {
    await run("git", ["-C", checkout, "worktree", "remove", "--force", place]);
    await rm(folder, { recursive: true, force: true });
  });
  await symlink(join(checkout, "node_modules"), join(place, "node_modules"));
  return place;
}

/** Two web processes behind the balancer, a worker and a scheduler. Each is replaced by itself. */
class Fleet {
  readonly refusals: string[] = [];
  readonly #env: NodeJS.ProcessEnv;
  readonly #balancer: Awaited<ReturnType<typeof openBalancer>>;
  #webs: { url: string; program: Program }[] = [];
  #others: Program[] = [];

  constructor(env: NodeJS.ProcessEnv, balancer: Awaited<ReturnType<typeof openBalancer>>) {
    this.#env = env;
    this.#balancer = balancer;
  }

  async open(place: string): Promise<void> {
    this.#webs = [await this.#web(place), await this.#web(place)];
    this.#others = await this.#rest(place);
    this.#balancer.send(...this.#webs.map(({ url }) => url));
  }

  /**
   * Replaces the processes: new ones start first, then the old ones are told to stop. A web process stops only once no
   * request is under way there.
   */
  async roll(place: string): Promise<void> {
    for (const [at, old] of [...this.#webs.entries()]) {
      const web = await this.#web(place);
      this.#webs = this.#webs.with(at, web);
      this.#balancer.send(...this.#webs.map(({ url }) => url));
      await this.#balancer.drained(old.url);
      await this.#end(old.program);
    }
    const others = await this.#rest(place);
    await this.#endOthers();
    this.#others = others;
  }

  async stop(): Promise<void> {
    for (const { program } of this.#webs) await this.#end(program);
    await this.#endOthers();
  }

  /** Asks each web process behind the balancer whether it is ready, until the signal comes. */
  async watch(problems: Problems, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const { url } of this.#webs) {
        const answer = await fetch(`${url}/-/ready`).catch((error: Error) => error);
        if (answer instanceof Error) continue; // The process was replaced just then.
        if (!answer.ok) problems.add("a process that serves is not ready", await answer.text());
      }
      await delay(500);
    }
  }

  async #endOthers(): Promise<void> {
    for (const old of this.#others) await this.#end(old);
  }

  async #end(program: Program): Promise<void> {
    const code = await program.stop();
    if (code !== 0) this.refusals.push(`ended with ${code}: ${program.lines.at(-1)?.msg}`);
  }

  async #web(place: string): Promise<{ url: string; program: Program }> {
    const program = startProgramAt(place, "src/web.ts", { ...this.#env, LOG_LEVEL: "info" });
    const line = await program.said("Listening");
    const url = String(line.address ?? line.url);
    await until("the web process is ready", async () => (await fetch(`${url}/-/ready`)).ok);
    return { url, program };
  }

  async #rest(place: string): Promise<Program[]> {
    const env = { ...this.#env, LOG_LEVEL: "info" };
    const worker = startProgramAt(place, "workers/main.ts", env);
    const scheduler = startProgramAt(place, "workers/scheduler.ts", env);
    await worker.said("Working");
    await scheduler.said("Scheduling");
    return [worker, scheduler];
  }
}

interface Reading {
  url: string;
  names: readonly string[];
  token: string;
  problems: Problems;
  signal: AbortSignal;
}

/**
 * Begins PER_SECOND reads in a second, until the signal comes. `time.part` names the part of the way to which a read
 * belongs.
 */
function readOn({ url, names, token, problems, signal }: Reading) {
  const agent = new Agent({ connections: 50 });
  const took: number[] = [];
  const slowest: Record<string, number> = {};
  const underWay = new Set<Promise<void>>();
  const one = async (at: number, part: string) => {
    const name = names[at % names.length];
    const path = at % 2 === 0 ? `issues?state=all&page=${1 + (at % 3)}` : `issues/${1 + (at % 50)}`;
    const begun = performance.now();
    try {
      const headers = { authorization: `token ${token}`, "user-agent": "test" };
      const answer = await request(`${url}/repos/${name}/${path}`, { dispatcher: agent, headers });
      await answer.body.arrayBuffer();
      // Other statuses may be right, because issues are deleted and moved there.
      if (answer.statusCode >= 500 || answer.statusCode === 429) problems.add(`read: ${answer.statusCode}`, path);
    } catch (error) {
      problems.add("read: no answer", (error as Error).message);
    }
    const ms = performance.now() - begun;
    took.push(ms);
    slowest[part] = Math.max(slowest[part] ?? 0, Math.round(ms));
  };
  const time = { part: "before" };
  const ended = (async () => {
    const startedAt = performance.now();
    for (let at = 0; !signal.aborted; ) {
      const due = ((performance.now() - startedAt) / 1_000) * PER_SECOND;
      for (; at < due; at++) {
        const read: Promise<void> = one(at, time.part).finally(() => underWay.delete(read));
        underWay.add(read);
      }
      await delay(10);
    }
    await Promise.all(underWay);
    await agent.close();
    const sorted = took.toSorted((a, b) => a - b);
    return {
      count: took.length,
      slowestMs: sorted.at(-1) ?? Number.NaN,
      p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
      slowest,
    };
  })();
  return { time, ended };
}

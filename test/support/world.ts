import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import type { Context } from "../../src/context.ts";
import { queueCounts } from "../../src/queues/counts.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { openSimulator, type SimulatorOptions } from "../../src/simulator/simulator.ts";
import { scheduleCatchUps } from "../../src/sync/catch-up/catch-up.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { fetchAndStoreViewer } from "../../src/sync/following/viewer.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { PATIENCE_MS } from "./bounds.ts";
import { OWNER, UPSTREAM_TOKEN } from "./config.ts";
import { openMirror, type TestMirror } from "./mirror.ts";
import { until } from "./patience.ts";

/**
 * An upstream, a mirror of it with a web server and workers, and what a test can do with them. All of it runs in this
 * process.
 */
export interface TestWorld extends TestMirror {
  simulator: Simulator;
  /** Upstream's first repository, `owner/name`; the generator makes it the busiest. */
  first: string;
  /** A token of the mirror that may read everything and write. */
  token: string;
  /** Mirrors these repositories and waits until they are live. */
  mirror(...patterns: string[]): Promise<void>;
  /** Registers the mirror's webhook at upstream. */
  listen(...fullNames: string[]): Promise<void>;
  /** Settles every doubt: the mirror's clock moves past the lag of all replicas, and due marks are refreshed. */
  settleMarks(): Promise<void>;
  /** Catches up once with every repository. */
  catchUp(): Promise<void>;
  /** Waits until upstream has sent its webhooks, and the mirror has no due work left. */
  settle(): Promise<void>;
  get(path: string, headers?: Record<string, string>): Promise<{ status: number; headers: Headers; body: unknown }>;
}

export interface TestWorldOptions {
  /**
   * Mergeability is known at once unless a `mergeableDelayMs` is given. The simulator's clock need not move with the
   * mirror's, so a delay would have to pass while a test waits.
   */
  simulator?: SimulatorOptions;
  /** Makes upstream's world before the mirror sees it. */
  fill?: (simulator: Simulator) => void | Promise<void>;
  env?: NodeJS.ProcessEnv;
  workers?: boolean;
  /** How long a first copy may take. */
  copiedWithinMs?: number;
}

export async function openWorld({
  simulator: options,
  fill,
  env,
  workers = true,
  copiedWithinMs = PATIENCE_MS,
}: TestWorldOptions = {}): Promise<TestWorld> {
  await using opening = new AsyncDisposableStack();
  const worldOptions = { mergeableDelayMs: 0, ...options?.worldOptions };
  const simulator = opening.use(await openSimulator({ ...options, worldOptions }));
  await fill?.(simulator);
  if (!simulator.tokens.find(UPSTREAM_TOKEN))
    simulator.tokens.create({ token: UPSTREAM_TOKEN, login: OWNER, repositories: "all", write: true });
  const mirror = opening.use(await openMirror({ upstream: simulator.url, workers, ...(env ? { env } : {}) }));
  const { ctx, url, advance } = mirror;
  const userId = await fetchAndStoreViewer(ctx);
  const token = await createApiToken(ctx, { userId, canWrite: true });
  const all = opening.move();

  const idOf = (fullName: string) => {
    const [owner = "", name = ""] = fullName.split("/");
    return simulator.world.repositoryByName(owner, name)?.repository.id ?? 0;
  };
  const summary = (await (await fetch(`${simulator.url}/-/state`)).json()) as { repositories: { full_name: string }[] };

  return {
    ...mirror,
    simulator,
    first: summary.repositories[0]?.full_name ?? "",
    token,
    mirror: (...patterns) => mirrorAll(ctx, patterns, copiedWithinMs),
    async listen(...fullNames) {
      // The test itself makes the hooks, because the mirror would leave a second between two writes.
      for (const fullName of fullNames) {
        const secret = hookSecret(ctx.config.webhookSecrets[0] ?? "", { type: "repository", id: idOf(fullName) });
        const created = await fetch(`${simulator.url}/repos/${fullName}/hooks`, {
          method: "POST",
          headers: { authorization: `token ${UPSTREAM_TOKEN}`, "user-agent": "test" },
          body: JSON.stringify({ events: ["*"], config: { url: `${url}/webhooks`, secret, content_type: "json" } }),
        });
        if (created.status !== 201) throw new Error(`Upstream made no hook: ${await created.text()}`);
      }
    },
    settle: () => settle(simulator, ctx),
    async settleMarks() {
      await settle(simulator, ctx);
      // A read may itself leave a doubt. Each round begins after the lag of every replica, and waits twice as long as
      // the one before.
      for (let waitMs = 30_000; waitMs < 1_000_000 && (await countMarks(ctx)) > 0; waitMs *= 2) {
        advance(waitMs);
        await ctx.queues.refresh.clean(0, 1_000_000, "delayed"); // A job that a worker is just taking stays.
        await dispatchMarks(ctx);
        await settle(simulator, ctx);
      }
      if ((await countMarks(ctx)) > 0)
        throw new Error(`Doubts are left that five reads did not settle: ${JSON.stringify(await whatIsOpen(ctx))}`);
    },
    async catchUp() {
      await scheduleCatchUps(ctx);
      await settle(simulator, ctx);
    },
    async get(path, headers = {}) {
      const response = await fetch(`${url}${path}`, {
        headers: { authorization: `token ${token}`, "user-agent": "test", ...headers },
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Mirrors these repositories, and waits until everything that is mirrored is live. */
export async function mirrorAll(ctx: Context, patterns: readonly string[], withinMs = PATIENCE_MS): Promise<void> {
  await addSelections(ctx, patterns);
  await until("every pattern is resolved", () => resolved(ctx), withinMs);
  const unresolved = await ctx.db.query<{ problem: string }>(sql`select problem from problems where task = 'select'`);
  if (unresolved[0]) throw new Error(unresolved[0].problem);
  await until(
    "every repository is live",
    async () => {
      const rows = await ctx.db.query<{ state: string }>(sql`select state from repository_syncs`);
      return rows.length > 0 && rows.every((row) => row.state === "live");
    },
    withinMs,
  );
}

/**
 * False: another request is under way that will tell what is left of the quota. A job would come back at that time,
 * too.
 */
async function resolved(ctx: Context): Promise<boolean> {
  try {
    await resolveSelections(ctx);
    return true;
  } catch (error) {
    if (error instanceof QuotaSpentError) return false;
    throw error;
  }
}

async function countMarks(ctx: Context): Promise<number> {
  const rows = await ctx.db.query<{ left: number }>(sql`select count(*)::int as left from refresh_marks`);
  return rows[0]?.left ?? 0;
}

/** What a person needs to know of marks that were not settled. */
async function whatIsOpen(ctx: Context): Promise<object> {
  const marks = await ctx.db.query(sql`select * from refresh_marks order by kind, repository_id, key limit 20`);
  const problems = await ctx.db.query(sql`select * from problems order by task, key limit 20`);
  return { now: ctx.clock.now(), marks, problems };
}

async function settle(simulator: Simulator, ctx: Context): Promise<void> {
  await simulator.quiet();
  await untilIdle(ctx);
}

/** Waits until the workers have no due work left. */
export async function untilIdle(ctx: Pick<Context, "db" | "queues" | "redis">): Promise<void> {
  // It has to be idle twice in a row. Queues are counted one after the other, so work may have moved into one that was
  // counted already.
  let idle = 0;
  await until("the mirror has nothing left to do", async () => {
    // Deliveries come first, because an applied one may have left work in a queue.
    const isBusy = (await hasPending(ctx)) || (await hasJobs(ctx));
    idle = isBusy ? 0 : idle + 1;
    return idle === 2;
  });
}

async function hasPending({ db }: Pick<Context, "db">): Promise<boolean> {
  return (await db.count(sql`select from deliveries where status = 'pending' limit 1`)) > 0;
}

async function hasJobs(ctx: Pick<Context, "queues" | "redis">): Promise<boolean> {
  const counts = await queueCounts(ctx);
  return Object.values(counts).some(({ waiting, active }) => waiting + active > 0);
}

import { once } from "node:events";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { type Context, openContext } from "../../src/context.ts";
import { serverOf } from "../../src/operations/redis.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { archiveRepository, editRepository } from "../../src/simulator/changes/repositories.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { callerOf } from "../../src/simulator/quota/quota.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { seededRandom } from "../../src/simulator/world/random.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { World } from "../../src/simulator/world/world.ts";
import { placeRepositoryHook } from "../../src/upstream/hooks/hooks.ts";
import { testConfig, testEnvironment } from "../support/config.ts";
import type { OwnStores } from "../support/own-stores.ts";
import type { SharedClock } from "./clock.ts";
import { Ending, type Found, HangError, PATIENCE_MS } from "./ending.ts";
import { Following } from "./following.ts";
import { Meetings } from "./meetings.ts";
import { Mirror, SETTINGS } from "./mirror.ts";
import { letHappen, makeSmall, remade } from "./oddities.ts";
import { type Deed, type Plan, type PlanOptions, planOf, TOKENS } from "./schedule.ts";

export interface SimulationOptions extends PlanOptions {
  stores: OwnStores;
  clock: SharedClock;
  /** The folder of the sources that run: this checkout, or a copy with a bug in it. */
  root: string;
  /** The port of the web process. */
  port: number;
  /** The migrated database that each simulation's own database is cloned from. */
  template: string;
  /** The folder for the schedule, the record of what happened, and the logs of all processes. */
  directory: string;
}

/** The outcome of one simulation. */
export interface Outcome extends Found {
  seed: number;
  steps: number;
  workers: number;
  /** Webhooks that upstream sent, redeliveries included. */
  deliveries: number;
  /** How often each fault struck. */
  faults: Record<string, number>;
  /** Processes that ended by themselves. */
  crashes: string[];
  /** The messages that were logged as errors, with how often. */
  errors: Record<string, number>;
  /** The work that the mirror did not finish; null when it finished everything. */
  hang: string | null;
  /** Minutes of the time that all processes shared. */
  simulatedMinutes: number;
  seconds: number;
  /** When each part of the ending was over, in seconds from the simulation's beginning. */
  ended: Record<string, number>;
}

export function hasFailed({ drift, missed, unfollowed, crashes, hang }: Outcome): boolean {
  return drift > 0 || missed > 0 || unfollowed > 0 || crashes.length > 0 || hang !== null;
}

const LOGINS = ["mirror-owner", "mirror-helper"];
const WEBHOOK_SECRET = "simulation-secret";
/** The name that one repository has after the other. */
const REUSED = "reused";
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** Plays one seed against a new upstream and a new, empty mirror. */
export async function simulate(options: SimulationOptions): Promise<Outcome> {
  const { seed, stores, clock, directory } = options;
  const began = performance.now();
  clock.reset();
  const plan = planOf(options);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "schedule.jsonl"), plan.steps.map((step) => `${JSON.stringify(step)}\n`).join(""));
  await using resources = new AsyncDisposableStack();
  const database = await cloneDatabase(stores.postgres.url, options.template, `simulation_${seed}_${process.pid}`);
  resources.defer(() => database.drop());
  const world = new World({ seed, bumps: plan.bumps });
  const simulator = resources.use(await openSimulator({ world, seed }));
  const { repositories: generated } = generateWorld(world, {
    seed,
    repositories: 2,
    issues: 24,
    pulls: 12,
    people: 12,
  });
  const repositories = [...generated];
  const [first] = repositories;
  if (options.faults.has("reuse") && first) repositories.push(makeSmall(world, first.ownerId, REUSED));
  if (LOGINS.length !== TOKENS) throw new Error(`The schedule counts on ${TOKENS} tokens`);
  const tokens = LOGINS.map((login, index) => newToken(simulator, seed, login, index));
  const redis = { url: stores.redis.url, prefix: `{s${seed}}` };
  const places = { database: stores.pooler?.through(database.url) ?? database.url, redis, upstream: simulator.url };
  const env = {
    ...(stores.pooler ? { DATABASE_DIRECT_URL: database.url } : {}),
    UPSTREAM_TOKEN: tokens.join(),
    WEBHOOK_SECRET,
    REPOSITORIES: repositories.map((one) => world.fullName(one)).join(),
    PORT: String(options.port),
    PUBLIC_URL: `http://127.0.0.1:${options.port}`,
    ...SETTINGS,
    AUDIT_PERIOD: `${plan.auditPeriodMs / SECOND}s`,
    ...(plan.isAlone ? { CATCH_UP_INTERVAL: "24h", SWEEP_INTERVAL: "24h", DELIVERY_CHECK_INTERVAL: "24h" } : {}),
  };
  const mirror = resources.use(
    new Mirror({
      root: options.root,
      env: testEnvironment(places, env),
      clock: clock.path,
      parts: { web: 1, scheduler: 1, worker: plan.workers },
      skewOf: (part, index) => plan.skewsMs[`${part}-${index}`] ?? 0,
      logDirectory: directory,
    }),
  );
  const ctx = await openContext(testConfig(places, { ...env, LOG_LEVEL: "silent" }), resources, { name: "simulation" });
  const run = new Run({
    ...{ plan, ctx, simulator, mirror, stores, clock, repositories, tokens, directory },
    url: `http://127.0.0.1:${options.port}`,
    reusedName: first ? `${world.user(first.ownerId).login}/${REUSED}` : "",
  });
  const outcome = await run.play();
  return {
    ...outcome,
    simulatedMinutes: Math.round(clock.aheadMs / MINUTE),
    seconds: Math.round((performance.now() - began) / 100) / 10,
  };
}

interface Stage {
  plan: Plan;
  ctx: Context;
  simulator: Simulator;
  mirror: Mirror;
  stores: OwnStores;
  clock: SharedClock;
  /** The repositories that are mirrored, and those that were until they were deleted. */
  repositories: Repository[];
  /** The name, `owner/name`, that one repository has after the other. */
  reusedName: string;
  tokens: string[];
  directory: string;
  /** The address of the mirror's web process. */
  url: string;
}

class Run {
  readonly #stage: Stage;
  readonly #ending: Ending;
  readonly #faults: Record<string, number> = {};
  readonly #began = performance.now();
  readonly #ended: Record<string, number> = {};
  /** The file that says what happened when. */
  readonly #log: string;
  /** What comes back at a step: killed processes are started again, and revoked tokens accepted. */
  readonly #returning = new Map<number, (() => void)[]>();
  /** Tokens that upstream refuses for a while, each with its owner's login. */
  readonly #revoked = new Map<string, string>();

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#log = join(stage.directory, "events.log");
    const { auditPeriodMs } = stage.plan;
    this.#ending = new Ending({ ...stage, auditPeriodMs, ended: (part) => this.#end(part) });
  }

  async play(): Promise<Omit<Outcome, "simulatedMinutes" | "seconds">> {
    const { plan, ctx, simulator, mirror, repositories, directory, url } = this.#stage;
    const { seed } = plan;
    const found = {
      drift: 0,
      missed: 0,
      untold: 0,
      unfollowed: 0,
      differences: [] as string[],
      hang: null as string | null,
    };
    try {
      await mirror.start();
      this.#end("start");
      await this.#hook();
      await this.#ending.until("copy", () => this.#ending.notCopied(), SECOND);
      await using following = await Following.open({ ctx, simulator, repositories, url });
      const live = simulator.startLive({ ratePerSecond: 0, seed });
      for (const [index, step] of plan.steps.entries()) {
        this.#stage.clock.advance(step.advanceMs);
        if (step.advanceMs > SECOND) await this.#ending.wake();
        this.#comeBack(index);
        for (const deed of step.deeds) await this.#do(deed, index);
        const done = live.step();
        this.#note(index, done ? `${done.kind} ${done.repository ?? ""}#${done.number ?? ""}` : "nothing");
        if (step.pauseMs > 0) await delay(step.pauseMs);
      }
      this.#comeBack(plan.steps.length);
      this.#end("steps");
      const meetings = new Meetings({ ...this.#stage, workers: plan.workers, wake: () => this.#ending.wake() }, seed);
      for (const meeting of plan.meetings) {
        this.#note("meeting", JSON.stringify(meeting));
        this.#countStruck();
        await meetings.hold(meeting);
      }
      found.missed += meetings.risen.length;
      found.differences.push(...meetings.risen);
      this.#end("meetings");
      await this.#calm();
      this.#end("quiet");
      if (plan.isAlone) await this.#ending.judgeAlone(found);
      await this.#ending.judge(found, () => this.#redeliverFailed());
      if (plan.auditLagMs > 0)
        await this.#ending.judgeBehind(found, plan.auditLagMs, (faults) => simulator.setFaults(faults));
      await this.#ending.judgeNames(found);
      await this.#ending.until("feed", () => following.behind(), 3 * SECOND);
      const unfollowed = await following.differences();
      found.unfollowed = unfollowed.length;
      found.differences.push(...unfollowed.slice(0, 100).map((line) => `by the feed alone: ${line}`));
      if (unfollowed.length > 0)
        writeFileSync(join(directory, "feed.jsonl"), following.heard.map((line) => `${line}\n`).join(""));
    } catch (error) {
      if (!(error instanceof HangError)) throw error;
      found.hang = error.message;
    }
    if (repositories.length === 0) throw new Error("Nothing was mirrored");
    this.#countStruck();
    return {
      seed,
      steps: plan.steps.length,
      workers: plan.workers,
      deliveries: simulator.webhooks.tally.sent,
      faults: this.#faults,
      ...found,
      crashes: mirror.crashes,
      errors: mirror.errors,
      ended: this.#ended,
    };
  }

  #note(step: number | string, what: string): void {
    const real = ((performance.now() - this.#began) / SECOND).toFixed(2);
    appendFileSync(this.#log, `${new Date().toISOString()} ${real}s ${step} ${what}\n`);
  }

  #end(part: string): void {
    this.#note("end of", part);
    this.#ended[part] = Math.round((performance.now() - this.#began) / 100) / 10;
  }

  #count(fault: string, times = 1): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + times;
  }

  /** Counts the faults that have struck, because the simulator forgets them whenever its faults are set. */
  #countStruck(): void {
    const { faults } = this.#stage.simulator;
    for (const [fault, times] of faults.struck) this.#count(fault, times);
    faults.struck.clear();
  }

  async #hook(): Promise<void> {
    const { ctx, simulator, repositories } = this.#stage;
    for (const repository of repositories) {
      await placeRepositoryHook(ctx.upstream, {
        repository: { id: repository.id, fullName: simulator.world.fullName(repository) },
        url: `${ctx.config.publicUrl}/webhooks`,
        secret: WEBHOOK_SECRET,
        events: ["*"],
      });
    }
  }

  async #do(deed: Deed, step: number): Promise<void> {
    const { simulator, mirror, stores, plan, ctx } = this.#stage;
    this.#note(step, JSON.stringify(deed));
    if (deed.kind !== "weather") this.#count(deed.kind);
    switch (deed.kind) {
      case "weather":
        this.#countStruck();
        simulator.setFaults({ ...deed.settings, seed: plan.seed + step });
        simulator.quota.status = deed.limitStatus;
        return;
      case "redeliver":
        return this.#redeliver(deed.count, step);
      case "quota": {
        const token = simulator.tokens.find(this.#stage.tokens[step % 2] ?? "");
        if (token) simulator.quota.setRemaining(callerOf(token, ""), "core", deed.remaining);
        return;
      }
      case "rotate": {
        const { tokens } = this.#stage;
        const index = step % tokens.length;
        simulator.tokens.delete(tokens[index] ?? "");
        tokens[index] = newToken(simulator, plan.seed + step, LOGINS[index] ?? "", index);
        mirror.deploy({ UPSTREAM_TOKEN: tokens.join() });
        return;
      }
      case "revoke": {
        const token = this.#stage.tokens[deed.index] ?? "";
        if (!simulator.tokens.delete(token)) return; // The token is refused already.
        this.#revoked.set(token, LOGINS[deed.index] ?? "");
        this.#later(step + 1 + deed.awaySteps, () => this.#restore(token));
        return;
      }
      case "kill":
        await mirror.kill(deed.part, deed.index);
        this.#later(step + 1 + deed.awaySteps, () => mirror.restart(deed.part, deed.index));
        return;
      case "flush":
        // While Redis is away there is nothing to flush.
        await serverOf(ctx.redis, ctx.config)
          .then((server) => server.flushall())
          .catch((error: Error) => this.#note(step, `no flush: ${error.message}`));
        return;
      case "parts": {
        const repository = this.#stage.repositories[deed.index % this.#stage.repositories.length];
        if (!repository || repository.deleted) return;
        const turn = (hasPullRequests: boolean) =>
          editRepository(simulator.world, repository.ownerId, repository, { hasPullRequests });
        turn(false);
        this.#later(step + 1 + deed.awaySteps, () => turn(true));
        return;
      }
      case "archive": {
        const repository = this.#stage.repositories[deed.index % this.#stage.repositories.length];
        if (!repository || repository.deleted) return;
        this.#changeOne(repository, plan.seed + step);
        archiveRepository(simulator.world, repository.ownerId, repository, true);
        this.#later(step + 1 + deed.awaySteps, () => {
          if (!repository.deleted) archiveRepository(simulator.world, repository.ownerId, repository, false);
        });
        return;
      }
      case "reuse": {
        const other = remade(simulator.world, this.#stage.reusedName);
        if (other) this.#stage.repositories.push(other);
        return;
      }
      case "odd": {
        const open = this.#stage.repositories.filter((one) => !one.deleted && !one.archived);
        const repository = open[deed.index % open.length];
        if (repository) letHappen(deed.oddity, { world: simulator.world, repository, seed: plan.seed + step });
        return;
      }
      case "jump":
        this.#stage.clock.jump(deed.aheadMs);
        this.#later(step + 1 + deed.awaySteps, () => this.#stage.clock.jump(0));
        return;
      case "twice":
        return this.#changeTwice(step);
      case "redis":
        await stores.redis.stop(ctx.config.redisPrefix);
        await delay(deed.awayMs);
        await stores.redis.start();
        return;
      case "postgres":
        await stores.postgres.stop();
        await delay(deed.awayMs);
        await stores.postgres.start();
        return;
      default:
        deed satisfies never;
    }
  }

  /** Whatever is away for longer comes back after the last step. */
  #later(step: number, back: () => void): void {
    const at = Math.min(step, this.#stage.plan.steps.length);
    this.#returning.set(at, [...(this.#returning.get(at) ?? []), back]);
  }

  #comeBack(step: number): void {
    for (const back of this.#returning.get(step) ?? []) back();
  }

  /** Has upstream accept the token again, unless a newer one has taken its place meanwhile. */
  #restore(token: string): void {
    const { simulator, tokens } = this.#stage;
    const login = this.#revoked.get(token);
    if (login !== undefined && this.#revoked.delete(token) && tokens.includes(token)) allow(simulator, token, login);
  }

  /**
   * Changes something twice in one second. `updated_at` does not tell the changes apart, and their webhooks arrive in
   * either order.
   */
  #changeTwice(step: number): void {
    const { simulator, repositories, plan } = this.#stage;
    const random = seededRandom(plan.seed * 6_700_417 + step);
    const repository = random.pick(repositories);
    const issues = repository.rows.byNumber.filter((one) => one && !one.deleted);
    const issue = issues.length > 0 ? random.pick(issues) : undefined;
    if (repository.archived || !issue) return;
    for (const which of ["first", "second"])
      editIssue(simulator.world, repository.ownerId, issue, { title: `Its ${which} title of step ${step}` });
  }

  /** Changes something at the last moment. */
  #changeOne(repository: Repository, seed: number): void {
    const issues = repository.rows.byNumber.filter((one) => one && !one.deleted);
    const issue = issues.length > 0 && !repository.archived ? seededRandom(seed).pick(issues) : undefined;
    if (issue) editIssue(this.#stage.simulator.world, repository.ownerId, issue, { title: `The last title (${seed})` });
  }

  #redeliver(count: number, step: number): void {
    const { simulator, repositories, plan } = this.#stage;
    const random = seededRandom(plan.seed * 7_919 + step);
    for (const hook of hooksOf(repositories)) {
      const sent = simulator.webhooks.log.list(hook.id, {});
      for (let left = count; left > 0 && sent.length > 0; left--) simulator.webhooks.redeliver(hook, random.pick(sent));
    }
  }

  /**
   * Redelivers failed deliveries, as an operator of upstream's hooks would: long after later ones, and in another
   * order.
   */
  #redeliverFailed(): void {
    const { simulator, repositories, plan } = this.#stage;
    const random = seededRandom(plan.seed);
    for (const hook of hooksOf(repositories)) {
      const failed = simulator.webhooks.log.list(hook.id, { status: "failure" });
      for (let left = failed.length; left > 0; left--) {
        const [delivery] = failed.splice(random.int(0, left - 1), 1);
        if (delivery) simulator.webhooks.redeliver(hook, delivery);
      }
    }
  }

  /** Ends the faults, and waits until upstream has sent its webhooks. */
  async #calm(): Promise<void> {
    const { simulator, mirror, ctx } = this.#stage;
    this.#countStruck();
    simulator.setFaults({});
    for (const token of this.#revoked.keys()) this.#restore(token);
    await mirror.start();
    await simulator.quiet();
    // Redis may have been struck last. The ending reads from Redis what work is left.
    if (ctx.redis.status !== "ready") await once(ctx.redis, "ready", { signal: AbortSignal.timeout(PATIENCE_MS) });
  }
}

function hooksOf(repositories: readonly Repository[]) {
  return repositories.filter(({ deleted }) => !deleted).flatMap(({ rows }) => [...rows.hooks.values()]);
}

/** A token of this account whose text no earlier token had. It is the same each time that a seed is played. */
function newToken(simulator: Simulator, seed: number, login: string, index: number): string {
  const token = `ghp_${seededRandom(seed * 31 + index).hex(36)}`;
  allow(simulator, token, login);
  return token;
}

function allow(simulator: Simulator, token: string, login: string): void {
  simulator.tokens.create({ token, login, repositories: "all", write: true });
}

async function cloneDatabase(server: string, template: string, name: string) {
  const administer = async (statement: string) => {
    const admin = new pg.Client({ connectionString: server });
    await admin.connect();
    try {
      await admin.query(statement);
    } finally {
      await admin.end();
    }
  };
  await administer(`create database ${name} template ${template}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`drop database ${name} with (force)`) };
}

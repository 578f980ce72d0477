import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { type QueueCounts, queueCounts } from "../../src/queues/counts.ts";
import { QUEUE_NAMES, QueueUnavailableError } from "../../src/queues/queues.ts";
import type { Repository } from "../../src/simulator/records.ts";
import type { Simulator } from "../../src/simulator/running.ts";
import { type ComparedUpstream, compare } from "../support/comparison.ts";
import type { SharedClock } from "./clock.ts";
import { isHeard, isTold } from "./told.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** Longer than any replica lags, and than the mirror takes for it. */
const LONG_LAG_MS = 30 * SECOND;
/** In this time upstream's list of deliveries has been looked at three times, which is as often as one is asked for. */
const LAST_WORDS_MS = 6 * MINUTE;
/** Real time in which the mirror must have come to an end. */
export const PATIENCE_MS = 600_000;

/** Thrown when the mirror does not come to an end; the message says with what. */
export class HangError extends Error {
  override name = "HangError";
}

/** What is left between a mirror and its upstream once that is quiet. */
export interface Found {
  /** Differences that were left once upstream was quiet and one sweep and one audit had passed. */
  drift: number;
  /** Differences before that audit in what webhooks and catch-ups tell. */
  missed: number;
  /** Differences before that audit in what they do not tell, and so an audit has to find. */
  untold: number;
  differences: string[];
}

interface EndingStage {
  ctx: Context;
  simulator: Pick<Simulator, "quiet" | "world"> & ComparedUpstream;
  clock: SharedClock;
  /** Those that are mirrored. */
  repositories: readonly Repository[];
  auditPeriodMs: number;
  /** Is told which part has ended. */
  ended: (part: string) => void;
}

/** How a simulation ends: upstream is quiet, the mirror comes to an end with its work, and the two are compared. */
export class Ending {
  readonly #stage: EndingStage;

  constructor(stage: EndingStage) {
    this.#stage = stage;
  }

  /**
   * Waits until the mirror must be equal to a quiet upstream, and notes in `found` where it is not.
   * @param lastWords what upstream has sent again before the mirror is judged
   */
  async judge(found: Found, lastWords: () => void): Promise<void> {
    const quietAt = Date.now();
    this.#stage.clock.advance(LONG_LAG_MS);
    await this.until("catch-up", () => this.#unconfirmedSince(quietAt), 3 * SECOND);
    lastWords();
    await this.until("telling", () => this.#untoldBy(quietAt), 3 * SECOND);
    await this.#compare(
      (kind, path, mine) => {
        const told = isTold(kind, path, mine);
        found[told ? "missed" : "untold"] += 1;
        return told;
      },
      found.differences,
      "before the audit",
    );
    // A sweep may have asked for one earlier, before the last words arrived.
    const toldAt = Date.now();
    this.#stage.clock.advance(this.#stage.auditPeriodMs);
    await this.until("audit", () => this.#unauditedSince(toldAt), 10 * SECOND);
    await this.#compare(
      () => {
        found.drift += 1;
        return true;
      },
      found.differences,
      "after the audit",
    );
  }

  /** The same of what webhooks and marks alone have brought, before anything is read on a schedule. */
  async judgeAlone(found: Found): Promise<void> {
    await this.until("webhooks", () => this.#busy(), 3 * SECOND);
    await this.#compare(
      (kind, path, mine) => {
        const heard = isHeard(kind, path, mine);
        if (heard) found.missed += 1;
        return heard;
      },
      found.differences,
      "before any catch-up",
    );
  }

  /**
   * Lets time go by until nothing is left. `left` says what is; it is asked again and again, since what is waited for
   * happens in other processes.
   */
  async until(what: string, left: () => Promise<string | null>, stepMs: number): Promise<void> {
    const { clock, simulator } = this.#stage;
    const end = performance.now() + PATIENCE_MS;
    let advanceMs = stepMs;
    for (;;) {
      const open = await left();
      if (open === null) break;
      if (performance.now() > end) throw new HangError(`${what}: ${open}`);
      // While the mirror works, time passes at real speed. Otherwise a slow machine would never finish the work that
      // becomes due meanwhile.
      if (await this.#isWorking()) {
        await delay(50);
        continue;
      }
      clock.advance(advanceMs);
      // What waits for the reset of a quota waits for an hour.
      advanceMs = Math.min(advanceMs * 1.1, 10 * MINUTE);
      await this.wake();
      await delay(100);
      await simulator.quiet();
    }
    this.#stage.ended(what);
  }

  async #isWorking(): Promise<boolean> {
    const counts = await this.#queueCounts();
    if (counts === null) return true;
    // Its tasks only ask for others; one that asks for lost webhooks waits a second of real time for each.
    return Object.entries(counts).some(
      ([name, { waiting, active }]) => name !== QUEUE_NAMES.maintenance && waiting + active > 0,
    );
  }

  /**
   * Null: Redis did not answer in time, as on a machine that stood still for seconds. `#until` asks again, while it has
   * patience.
   */
  async #queueCounts(): Promise<Record<string, QueueCounts> | null> {
    try {
      return await queueCounts(this.#stage.ctx);
    } catch (error) {
      if (error instanceof QueueUnavailableError) return null;
      throw error;
    }
  }

  /** Wakes the workers: they sleep by real time until the next job, but simulated time has moved faster. */
  async wake(): Promise<void> {
    const { redis, config } = this.#stage.ctx;
    if (redis.status !== "ready") return;
    const waking = redis.pipeline();
    for (const name of Object.values(QUEUE_NAMES)) waking.zadd(`${config.redisPrefix}:${name}:marker`, 0, "0");
    await waking.exec();
  }

  async notCopied(): Promise<string | null> {
    const rows = await this.#stage.ctx.db.query<{ repository_id: string; state: string; problem: string }>(sql`
      select * from repository_syncs`);
    const waiting = rows.filter(({ state }) => state !== "live");
    if (rows.length < this.#stage.repositories.length) return `only ${rows.length} repositories are known`;
    return waiting.length === 0 ? null : JSON.stringify(waiting);
  }

  /** Which repositories no catch-up and no sweep has looked at since upstream was quiet; null: none. */
  async #unconfirmedSince(quietAt: number): Promise<string | null> {
    const since = new Date(quietAt + LONG_LAG_MS);
    const rows = await this.#stage.ctx.db.query(sql`
      select s.repository_id, s.state, s.problem, s.confirmed_at, w.swept_at from repository_syncs s left
        join sweeps w using (repository_id)
        where s.state <> 'live' or s.confirmed_at is null or s.confirmed_at < ${since} or w.swept_at is null or w.swept_at < ${since}`);
    return rows.length > 0 ? `not confirmed: ${JSON.stringify(rows)}` : null;
  }

  /** The open work before webhooks, catch-ups and one sweep have told everything; null: nothing. */
  async #untoldBy(quietAt: number): Promise<string | null> {
    const unconfirmed = await this.#unconfirmedSince(quietAt);
    if (unconfirmed !== null) return unconfirmed;
    if (Date.now() < quietAt + LAST_WORDS_MS) return "what was lost on the way is still to be sent again";
    return this.#busy();
  }

  async #unauditedSince(toldAt: number): Promise<string | null> {
    const rows = await this.#stage.ctx.db.query(sql`
      select s.repository_id, s.state, a.phase, a.started_at, a.finished_at from repository_syncs s left
        join audits a using (repository_id)
        where a.started_at is null or a.finished_at is null or a.started_at < ${new Date(toldAt)}`);
    if (rows.length > 0) return `not audited: ${JSON.stringify(rows)}`;
    return this.#busy();
  }

  /** What the mirror still has to do; null when it has nothing. */
  async #busy(): Promise<string | null> {
    const { ctx } = this.#stage;
    const rows = await ctx.db.query<{ pending: number; marks: number; oldest: string | null }>(sql`
      select (select count(*) from deliveries where status = 'pending')::int as pending, (select count(*)
        from refresh_marks)::int as marks,
        (select kind || ' ' || key || ' ' || repository_id || ' asked ' || asked_at || ' not before ' || not_before
        from refresh_marks order by asked_at limit 1) as oldest`);
    const { pending = 0, marks = 0, oldest = null } = rows[0] ?? {};
    if (pending > 0) return `${pending} deliveries are pending`;
    if (marks > 0) return `${marks} marks are open, the oldest ${oldest}`;
    const counts = await this.#queueCounts();
    if (counts === null) return "Redis does not say what stands in the queues";
    const busy = Object.entries(counts).filter(
      ([name, { waiting, active, delayed }]) =>
        // Its schedules always wait for their next turn.
        waiting + (name === QUEUE_NAMES.maintenance ? 0 : active + delayed) > 0,
    );
    return busy.length === 0 ? null : `queues: ${JSON.stringify(Object.fromEntries(busy))}`;
  }

  async #compare(counts: typeof isTold, differences: string[], when: string): Promise<void> {
    const { ctx, simulator, repositories } = this.#stage;
    for (const repository of repositories) {
      if (repository.deleted) continue;
      const found = await compare(ctx, simulator, String(repository.id), (...difference) => !counts(...difference));
      differences.push(...found.differences.map((line) => `${when}: ${simulator.world.fullName(repository)}: ${line}`));
    }
  }
}

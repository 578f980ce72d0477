import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { mayHaveName } from "../../src/kinds/user/kind.ts";
import { NAME_AGE_MS } from "../../src/mirror/store/names.ts";
import { type QueueCounts, queueCounts } from "../../src/queues/counts.ts";
import { QUEUE_NAMES } from "../../src/queues/queues.ts";
import { QueueUnavailableError } from "../../src/queues/unavailable.ts";
import { deleteComment } from "../../src/simulator/changes/comments.ts";
import { deleteIssue } from "../../src/simulator/changes/issues.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import type { World } from "../../src/simulator/world/world.ts";
import { type ComparedUpstream, compare } from "../support/comparison.ts";
import type { SharedClock } from "./clock.ts";
import { isHeard, isTold } from "./told.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** Longer than any replica lags, and than the longest lag that the mirror reckons with. */
const LONG_LAG_MS = 30 * SECOND;
/**
 * In this time the mirror looks at upstream's list of deliveries three times. It asks for a lost delivery no more often
 * than that.
 */
const LAST_WORDS_MS = 6 * MINUTE;
/** The real time within which the mirror must have finished its work. */
export const PATIENCE_MS = 600_000;

/** Thrown when the mirror does not finish its work. The message says which work is left. */
export class HangError extends Error {
  override name = "HangError";
}

/** How a mirror differs from its upstream once upstream is quiet. */
export interface Found {
  /** Differences that were left once upstream was quiet and one sweep and one audit had passed. */
  drift: number;
  /** Differences before that audit in fields that webhooks and catch-ups tell. */
  missed: number;
  /** Differences before that audit in fields that neither tells, so that an audit has to find them. */
  untold: number;
  /** Differences of somebody who rebuilds from the feed alone what upstream has. */
  unfollowed: number;
  differences: string[];
}

interface EndingStage {
  ctx: Context;
  simulator: Pick<Simulator, "quiet" | "world"> & ComparedUpstream;
  clock: SharedClock;
  /** The repositories that are mirrored. */
  repositories: readonly Repository[];
  auditPeriodMs: number;
  /** Called with the name of each part of the ending once it is over. */
  ended: (part: string) => void;
}

/** The end of a simulation: upstream is quiet, the mirror finishes its work, and the two are compared. */
export class Ending {
  readonly #stage: EndingStage;

  constructor(stage: EndingStage) {
    this.#stage = stage;
  }

  /**
   * Waits until the mirror must be equal to a quiet upstream, and notes in `found` where it is not.
   * @param lastWords has upstream send again what failed, before the mirror is judged
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
    // An earlier audit does not count: a sweep may have asked for it before the last words arrived.
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

  /**
   * Deletes something just before an audit, while every replica is behind. No webhook tells of it, so the audit finds
   * nothing, and the sweeps have to find out.
   */
  async judgeBehind(found: Found, lagMs: number, setFaults: Simulator["setFaults"]): Promise<void> {
    const { simulator, clock, repositories, auditPeriodMs } = this.#stage;
    clock.advance(auditPeriodMs);
    setFaults({ lagMs, webhooks: { drop: 1 } });
    const begunAt = Date.now();
    for (const repository of repositories)
      if (!repository.deleted && !repository.archived) deleteLast(simulator.world, repository);
    await this.until("audit of replicas", () => this.#unauditedSince(begunAt), 500);
    setFaults({});
    const quietAt = Date.now();
    clock.advance(LONG_LAG_MS);
    await this.until("sweeps after it", () => this.#untoldBy(quietAt), 3 * SECOND);
    await this.#compare(
      () => {
        found.drift += 1;
        return true;
      },
      found.differences,
      "after an audit of replicas that were behind",
    );
  }

  /** Judges the names of accounts, which no event tells: after a day the mirror has read them all. */
  async judgeNames(found: Found): Promise<void> {
    const { ctx, clock, simulator } = this.#stage;
    clock.advance(NAME_AGE_MS + MINUTE);
    // Clocks are wrong by up to a second.
    const dueAt = new Date(Date.now() + NAME_AGE_MS - MINUTE);
    await this.until("names", () => this.#unread(dueAt), 3 * SECOND);
    const rows = await ctx.db.query<{ id: number; login: string; isKnown: boolean; name: string | null }>(sql`
      select id::float8 as id, login, document -> 'name' is not null as "isKnown", name from users where node_id is not null`);
    for (const { id, login, isKnown, name } of rows) {
      const theirs = simulator.world.users.get(id);
      if (!theirs || !mayHaveName(theirs.type) || (isKnown && name === theirs.name)) continue;
      found.drift += 1;
      found.differences.push(
        `names: ${login}: ${isKnown ? JSON.stringify(name) : "unknown"} ≠ ${JSON.stringify(theirs.name)}`,
      );
    }
  }

  /** Names that are due before this time; null: none. */
  async #unread(dueAt: Date): Promise<string | null> {
    const left = await this.#stage.ctx.db.count(sql`
      select from account_names a join users u on u.id = a.user_id where a.due_at < ${dueAt} and u.node_id is not null and u.deleted_at is null`);
    return left === 0 ? null : `${left} names are still to be read`;
  }

  /** Judges the mirror by what webhooks and marks alone have brought, before anything is read on a schedule. */
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
   * Lets time go by until `left` says that nothing is left. It asks `left` again and again, because the work happens in
   * other processes.
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
      // The steps grow, because work that waits for a quota's reset may wait for an hour.
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
    // The queue for maintenance does not count. Its tasks only ask for other jobs, and one of them, which asks for lost
    // webhooks, waits a second of real time for each.
    return Object.entries(counts).some(
      ([name, { waiting, active }]) => name !== QUEUE_NAMES.maintenance && waiting + active > 0,
    );
  }

  /**
   * Null: Redis did not answer in time, as on a machine that stood still for seconds. `until` then asks again, within
   * its patience.
   */
  async #queueCounts(): Promise<Record<string, QueueCounts> | null> {
    try {
      return await queueCounts(this.#stage.ctx);
    } catch (error) {
      if (error instanceof QueueUnavailableError) return null;
      throw error;
    }
  }

  /** Wakes the workers. They sleep by real time until their next job, but simulated time has moved faster. */
  async wake(): Promise<void> {
    const { redis, config } = this.#stage.ctx;
    if (redis.status !== "ready") return;
    const waking = redis.pipeline();
    for (const name of Object.values(QUEUE_NAMES)) waking.zadd(`${config.redisPrefix}:${name}:marker`, 0, "0");
    await waking.exec();
  }

  async notCopied(): Promise<string | null> {
    const rows = await this.#stage.ctx.db.query<{ repository_id: number; state: string; problem: string }>(sql`
      select * from repository_syncs`);
    const waiting = rows.filter(({ state }) => state !== "live");
    if (rows.length < this.#stage.repositories.length) return `only ${rows.length} repositories are known`;
    return waiting.length === 0 ? null : JSON.stringify(waiting);
  }

  /** Whether a row `s` of `repository_syncs` is of a repository that upstream still has. */
  #isThere() {
    const ids = this.#stage.repositories.filter(({ deleted }) => !deleted).map(({ id }) => id);
    return sql`s.repository_id = any(${sql.array(ids, "bigint")}::bigint[])`;
  }

  /** The repositories that upstream has, and that the mirror does not follow. */
  async #unknown(): Promise<string[]> {
    const rows = await this.#stage.ctx.db.query<{ id: number }>(sql`
      select repository_id::float8 as id from repository_syncs where state <> 'gone'`);
    const known = new Set(rows.map(({ id }) => id));
    const { repositories, simulator } = this.#stage;
    return repositories
      .filter(({ id, deleted }) => !deleted && !known.has(id))
      .map(simulator.world.fullName, simulator.world);
  }

  /** The repositories that no catch-up or no sweep has looked at whole since upstream was quiet; null: none. */
  async #unconfirmedSince(quietAt: number): Promise<string | null> {
    const since = new Date(quietAt + LONG_LAG_MS);
    const unknown = await this.#unknown();
    if (unknown.length > 0) return `not mirrored: ${unknown.join()}`;
    const rows = await this.#stage.ctx.db.query(sql`
      select s.repository_id, s.state, s.problem, s.confirmed_at, s.parts_missing, w.swept_at from repository_syncs s left
        join sweeps w using (repository_id)
        where ${this.#isThere()} and (s.state <> 'live' or s.confirmed_at is null or s.confirmed_at < ${since} or w.swept_at is null or w.swept_at < ${since}
          or s.parts_missing is not null or greatest(s.confirmed_at, w.swept_at) > ${new Date(Date.now() + MINUTE)})`);
    return rows.length > 0 ? `not confirmed: ${JSON.stringify(rows)}` : null;
  }

  /** The work that is left before webhooks, catch-ups and one sweep have told everything; null: none. */
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
        where ${this.#isThere()} and (a.started_at is null or a.finished_at is null or a.started_at < ${new Date(toldAt)})`);
    if (rows.length > 0) return `not audited: ${JSON.stringify(rows)}`;
    return this.#busy();
  }

  /** The work that the mirror still has to do; null: none. */
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
        // The schedules of the queue for maintenance always wait for their next turn.
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

/** Deletes the newest issue and the newest comment of another one. */
function deleteLast(world: World, repository: Repository): void {
  const issues = repository.rows.byNumber.flatMap((one) => (one && !one.deleted && !one.pull ? [one] : []));
  const comment = issues
    .slice(0, -1)
    .findLast(({ thread }) => thread.length > 0)
    ?.thread.at(-1);
  const issue = issues.at(-1);
  if (comment) deleteComment(world, repository.ownerId, comment);
  if (issue) deleteIssue(world, repository.ownerId, issue);
}

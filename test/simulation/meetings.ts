/**
 * Changes that meet: in workers that apply them at once, or with reads by replicas that are behind. Nothing that comes
 * later repairs a mistake made here, so each stays visible until the mirror is compared.
 */
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { nextRound } from "../../src/mirror/store/marks.ts";
import { enqueueCatchUp } from "../../src/queues/queues.ts";
import { createComment, deleteComment, editComment } from "../../src/simulator/changes/comments.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { createReview } from "../../src/simulator/changes/reviews.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import type { FaultSettings } from "../../src/simulator/faults/faults.ts";
import { type Random, seededRandom } from "../../src/simulator/world/random.ts";
import { type Comment, GHOST_ID, type Issue, type Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import type { SharedClock } from "./clock.ts";
import type { Mirror } from "./mirror.ts";
import type { Meeting } from "./schedule.ts";

interface MeetingStage {
  ctx: Context;
  simulator: Simulator;
  clock: SharedClock;
  mirror: Mirror;
  workers: number;
  repositories: readonly Repository[];
  /** Wakes the workers after simulated time has moved. */
  wake: () => Promise<void>;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** How many issues and comments per repository are in doubt at once when the replica is asked. */
const ROWS = 3;
/** How often every issue changes in each meeting of workers. */
const CHANGES = 4;
/** The webhooks of a meeting of workers arrive within this real time, in any order. */
const SCATTER_MS = 400;
/** The length of a list: more than a page. */
const LIST = 120;
/** The number of seconds that each have two changes. Together they last longer than any replica lags. */
const MOMENTS = 10;
/** How long an answer takes: time enough to change something, or to end a process, while the mirror waits. */
const SLOW_MS = 600;
/** How long a meeting waits for the mirror. If the mirror is not ready by then, it is compared nevertheless. */
const PATIENCE_MS = 5_000;

export class Meetings {
  readonly #stage: MeetingStage;
  readonly #random: Random;
  readonly #seed: number;
  #count = 0;
  /** Comments that a lagging replica brought back after their deletion was applied. */
  readonly risen: string[] = [];

  constructor(stage: MeetingStage, seed: number) {
    this.#stage = stage;
    this.#seed = seed;
    this.#random = seededRandom(seed * 32_452_867 + 5);
  }

  async hold({ kind, lagMs }: Meeting): Promise<void> {
    this.#count += 1;
    switch (kind) {
      case "workers":
        return this.#ofWorkers(lagMs);
      case "reads":
        return this.#withReads(lagMs);
      case "pages":
        return this.#betweenPages();
      case "moments":
        return this.#withinMoments(lagMs);
      case "ends":
        return this.#withEnds();
      default:
        kind satisfies never;
    }
  }

  /**
   * All issues change within seconds, and their webhooks arrive in one moment. So each worker has some changes of every
   * issue.
   */
  async #ofWorkers(lagMs: number): Promise<void> {
    this.#weather({ lagMs, webhooks: { delay: 1, delayMs: SCATTER_MS } });
    for (let change = 0; change < CHANGES; change++) {
      this.#stage.clock.advance(SECOND);
      for (const issue of this.#open().flatMap(issuesOf)) this.#title(issue, `at once ${change}`);
    }
    await this.#isApplied();
  }

  /**
   * Just when the mirror is about to ask about contradictions, the same rows change again, and comments among them are
   * deleted. The replica that answers may show the rows as they were before, in between or after.
   */
  async #withReads(lagMs: number): Promise<void> {
    this.#weather({ lagMs });
    const issues = this.#open().flatMap((one) => this.#some(issuesOf(one), 2 * ROWS));
    const comments = this.#open().flatMap((one) => this.#some(commentsOf(one), ROWS));
    await this.#goTo(nextRound(new Date(), 0).getTime() + 2 * SECOND);
    const due = nextRound(new Date(), 0).getTime();
    for (const which of ["first", "second"]) {
      for (const issue of issues) this.#title(issue, which);
      for (const comment of comments) this.#body(comment, which);
    }
    await this.#isApplied();
    await this.#goTo(due - 1_950);
    for (const comment of comments) deleteComment(this.#stage.simulator.world, this.#by(), comment);
    await this.#isApplied();
    await this.#goTo(due - 950);
    // The webhooks of these changes arrive after those of the next ones. For half of them they arrive even after the
    // reads.
    const swapped = issues.filter((_, index) => index % 2 === 0);
    const split = issues.filter((_, index) => index % 2 === 1);
    const late = await this.#unheard(() => {
      for (const issue of split) this.#title(issue, "third");
    });
    const soon = await this.#unheard(() => {
      for (const issue of swapped) this.#title(issue, "third");
    });
    await this.#goTo(due - 400);
    for (const issue of issues) this.#title(issue, "fourth");
    await this.#stage.simulator.quiet();
    soon();
    await this.#isApplied();
    await this.#goTo(due + 200);
    const splitKeys = sql.array(
      split.map(({ number }) => number),
      "bigint",
    );
    await this.#until(sql`
      select from refresh_marks where not_before <= ${new Date(due)} and (kind = 'issue_comment' or key = any(${splitKeys}::bigint[])) limit 1`);
    await this.#noteRisen(comments);
    late();
    await this.#isApplied();
  }

  /**
   * Notes deleted comments that are shown again. Their webhooks were applied, and the replica's lag is one that the
   * mirror must reckon with. The mirror asks upstream again later, which would hide the mistake.
   */
  async #noteRisen(deleted: readonly Comment[]): Promise<void> {
    const ids = sql.array(
      deleted.map(({ id }) => id),
      "bigint",
    );
    const rows = await this.#stage.ctx.db.query<{ id: number }>(sql`
      select id from issue_comments where id = any(${ids}::bigint[]) and deleted_at is null`);
    this.risen.push(
      ...rows.map(({ id }) => `in meeting ${this.#count}: comment ${id}, which was deleted, is shown again`),
    );
  }

  /**
   * Rows of the first page move to the end while the mirror asks for the second page. Rows that no page has shown are
   * then too old for the next catch-up.
   */
  async #betweenPages(): Promise<void> {
    const { simulator, clock } = this.#stage;
    this.#weather({});
    for (const repository of this.#open()) {
      const issue = this.#some(issuesOf(repository), 1)[0];
      if (!issue) continue;
      const by = this.#by();
      const comments = Array.from({ length: LIST }, (_, at) => createComment(simulator.world, by, issue, `No. ${at}`));
      await this.#isApplied();
      clock.advance(MINUTE);
      this.#weather({ webhooks: { drop: 1 }, http: [{ kind: "slow", delayMs: SLOW_MS, match: "/issues/comments$" }] });
      for (const [at, comment] of comments.entries()) {
        clock.advance(at === LIST - 5 ? MINUTE : SECOND);
        this.#body(comment, `No. ${at}`);
      }
      const [first] = comments;
      if (!first) continue;
      await this.#askFor(repository);
      await this.#until(sql`select from issue_comments where id = ${first.id} and body not like 'The %'`);
      for (const comment of comments.slice(0, 10)) this.#body(comment, "last");
      await this.#isCaughtUp();
    }
  }

  /** Each second has two changes. A lagging replica shows the state between the two changes of one of these seconds. */
  async #withinMoments(lagMs: number): Promise<void> {
    this.#weather({ lagMs, webhooks: { drop: 1 } });
    const issues = this.#open().map((one) => this.#some(allOf(one), 2 * MOMENTS));
    for (let moment = 0; moment < MOMENTS; moment++) {
      await this.#goTo(Math.ceil(Date.now() / SECOND) * SECOND + 50);
      for (const some of issues) this.#titles(some.slice(2 * moment, 2 * moment + 1), "first");
      this.#stage.clock.advance(850);
      for (const some of issues) this.#titles(some.slice(2 * moment + 1, 2 * moment + 2), "second");
    }
    for (const repository of this.#open()) await this.#askFor(repository);
    await this.#isCaughtUp();
  }

  async #withEnds(): Promise<void> {
    const { simulator, mirror, workers } = this.#stage;
    this.#weather({ webhooks: { drop: 1 }, http: [{ kind: "slow", delayMs: SLOW_MS, match: "^POST /graphql$" }] });
    this.#stage.clock.advance(MINUTE);
    const pulls = this.#open().flatMap((one) => this.#some(allOf(one).filter(isPull), ROWS));
    for (const pull of pulls)
      createReview(simulator.world, this.#by(), pull, { state: "COMMENTED", body: `Meeting ${this.#count}` });
    for (const repository of this.#open()) await this.#askFor(repository);
    for (const { repository, number, updatedAt } of pulls)
      await this.#until(sql`select from pull_requests where repository_id = ${repository.id} and number = ${number}
        and updated_at < ${new Date(updatedAt * SECOND)}`);
    for (let worker = 0; worker < workers; worker++) await mirror.kill("worker", worker);
    this.#weather({});
    for (let worker = 0; worker < workers; worker++) mirror.restart("worker", worker);
  }

  async #askFor({ id }: Repository): Promise<void> {
    await enqueueCatchUp(this.#stage.ctx, { repositoryId: id }, { atOnce: true });
    await this.#stage.wake();
  }

  async #isCaughtUp(): Promise<void> {
    const { ctx } = this.#stage;
    const end = performance.now() + PATIENCE_MS;
    const isOpen = async () => {
      const { waiting, active, delayed } = await ctx.queues.catchUp.getJobCounts("waiting", "active", "delayed");
      return (waiting ?? 0) + (active ?? 0) + (delayed ?? 0) > 0;
    };
    while ((await isOpen()) && performance.now() < end) await delay(20);
  }

  #weather(settings: FaultSettings): void {
    this.#stage.simulator.setFaults({ seed: this.#seed + this.#count, lagDrawn: true, ...settings });
  }

  /** Makes the change without telling of it: its webhooks fail. The answer sends them later. */
  async #unheard(change: () => void): Promise<() => void> {
    const { simulator } = this.#stage;
    const before = new Set(this.#failed().map(({ delivery }) => delivery));
    const { webhooks } = simulator.faults;
    simulator.faults.webhooks = { fail: 1 };
    change();
    await simulator.quiet();
    simulator.faults.webhooks = webhooks;
    const failed = this.#failed().filter(({ delivery }) => !before.has(delivery));
    return () => {
      for (const { hook, delivery } of failed) simulator.webhooks.redeliver(hook, delivery);
    };
  }

  #failed() {
    const { simulator, repositories } = this.#stage;
    return repositories
      .flatMap(({ rows }) => [...rows.hooks.values()])
      .flatMap((hook) =>
        simulator.webhooks.log.list(hook.id, { status: "failure" }).map((delivery) => ({ hook, delivery })),
      );
  }

  #open(): Repository[] {
    return this.#stage.repositories.filter((one) => !one.archived && !one.deleted);
  }

  #some<One>(of: One[], most: number): One[] {
    const left = [...of];
    return Array.from({ length: Math.min(most, left.length) }, () =>
      left.splice(this.#random.int(0, left.length - 1), 1),
    ).flat();
  }

  #titles(issues: Issue[], which: string): void {
    for (const issue of issues) this.#title(issue, which);
  }

  #title(issue: Issue, which: string): void {
    editIssue(this.#stage.simulator.world, this.#by(), issue, {
      title: `The ${which} title of meeting ${this.#count}`,
    });
  }

  #body(comment: Comment, which: string): void {
    editComment(this.#stage.simulator.world, this.#by(), comment, `The ${which} of meeting ${this.#count}`);
  }

  #by(): number {
    const people = [...this.#stage.simulator.world.users.values()];
    return this.#random.pick(people.filter(({ id, type, deleted }) => type === "User" && id !== GHOST_ID && !deleted))
      .id;
  }

  async #goTo(moment: number): Promise<void> {
    this.#stage.clock.advance(Math.max(0, moment - Date.now()));
    await this.#stage.wake();
  }

  async #isApplied(): Promise<void> {
    await this.#stage.simulator.quiet();
    await this.#stage.wake();
    await this.#until(sql`select from deliveries where status = 'pending' limit 1`);
  }

  /** Waits until there is no such row. */
  async #until(rows: Parameters<Context["db"]["count"]>[0]): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while ((await this.#stage.ctx.db.count(rows)) > 0 && performance.now() < end) {
      await this.#stage.wake();
      await delay(20);
    }
  }
}

function allOf({ rows }: Repository): Issue[] {
  return rows.byNumber.flatMap((one) => (one && !one.deleted ? [one] : []));
}

function issuesOf(repository: Repository): Issue[] {
  return allOf(repository).filter(({ pull }) => !pull);
}

function commentsOf(repository: Repository): Comment[] {
  return issuesOf(repository).flatMap(({ thread }) => thread);
}

import type { Clock } from "./clock.ts";
import type { IssueEvent } from "./issue-events.ts";
import type { Random } from "./random.ts";
import type { Comment, Issue, Label, Milestone, Repository, Review, ReviewComment } from "./records.ts";
import type { Workflow, WorkflowJob, WorkflowRun } from "./records-actions.ts";
import type { CheckRun, CheckSuite, CommitStatus, Deployment, DeploymentStatus, Release } from "./records-code.ts";

export type Row =
  | Repository
  | Label
  | Milestone
  | Issue
  | IssueEvent
  | Comment
  | Review
  | ReviewComment
  | CheckSuite
  | CheckRun
  | CommitStatus
  | Release
  | Deployment
  | DeploymentStatus
  | Workflow
  | WorkflowRun
  | WorkflowJob;

/**
 * Reads from a replica that is `ms` behind. Once `draw` was called, it is as far behind as was drawn for the request. A
 * row that changed since then is shown as it was. A row that was created since then is not shown. Nothing is kept while
 * `ms` is 0.
 */
export class ReplicaLag {
  ms = 0;
  /** By how much the replica of the present request is less behind than `ms`. */
  #ahead = 0;
  readonly #clock: Clock;
  /** Oldest first: until `until`, the row reads as `was` (null: not there yet). */
  #sweepAt = 10_000;
  readonly #versions = new Map<Row, { readonly until: number; readonly was: Row | null }[]>();
  /** Deleted rows that some replica may still have, of each table, by their ids. */
  readonly #deleted = new WeakMap<ReadonlyMap<number, Row>, Map<number, Row>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Another request begins. Each replica is as far behind as it may be, or less: then reads go back in time. */
  draw(random: Random | null): void {
    this.#ahead = random === null || this.ms === 0 ? 0 : random.int(0, this.ms);
  }

  changing(row: Row): void {
    if (this.ms <= 0) return;
    const was = "pull" in row && row.pull ? { ...row, pull: { ...row.pull } } : { ...row };
    this.#keep(row, was);
  }

  created(row: Row): void {
    if (this.ms > 0) this.#keep(row, null);
  }

  /** Takes a row out of its table. To be called after `changing`: replicas have the row for a while yet. */
  delete<T extends Row>(table: Map<number, T>, row: T): void {
    table.delete(row.id);
    if (this.ms <= 0) return;
    const now = this.#clock.now();
    const kept = [...(this.#deleted.get(table) ?? [])].filter(([, one]) =>
      this.#versions.get(one)?.some(({ until }) => until > now),
    );
    this.#deleted.set(table, new Map([...kept, [row.id, row]]));
  }

  /** The row of a table with this id, or one that was deleted and that the replica still has. */
  find<T extends Row>(table: ReadonlyMap<number, T>, id: number): T | undefined {
    const deleted = this.#deleted.get(table)?.get(id);
    const was = deleted && this.seen(deleted);
    // A row that was deleted from a table is of the table's type.
    return table.get(id) ?? (was && !was.deleted ? (was as T) : undefined);
  }

  /** A table's rows as the replica has them, deleted ones among them that it still has, in no certain order. */
  rows<T extends Row>(table: ReadonlyMap<number, T>): T[] {
    // Rows that were deleted from a table are of the table's type.
    const deleted = [...(this.#deleted.get(table)?.values() ?? [])] as T[];
    return [...table.values(), ...deleted].flatMap((row) => this.seen(row) ?? []).filter((row) => !row.deleted);
  }

  /** The row as the replica has it; null when the replica does not have it yet. */
  seen<T extends Row>(row: T): T | null {
    if (this.#versions.size === 0) return row;
    const versions = this.#versions.get(row);
    if (!versions) return row;
    const now = this.#clock.now();
    const version = versions.find((one) => one.until - this.#ahead > now);
    // A row's versions are copies of it, and so of its type.
    if (version) return version.was as T | null;
    if (versions.every((one) => one.until <= now)) this.#versions.delete(row);
    return row;
  }

  /** Whether something that happened at `at` (epoch milliseconds) has not reached the replica. */
  pending(at: number): boolean {
    return this.ms > 0 && at + this.ms - this.#ahead > this.#clock.now();
  }

  #keep(row: Row, was: Row | null): void {
    const now = this.#clock.now();
    if (this.#versions.size >= this.#sweepAt) this.#sweep(now);
    const versions = (this.#versions.get(row) ?? []).filter((one) => one.until > now);
    versions.push({ until: now + this.ms, was });
    this.#versions.set(row, versions);
  }

  /** Rows that are not read again would stay for ever. */
  #sweep(now: number): void {
    for (const [row, versions] of this.#versions) {
      if (versions.every((one) => one.until <= now)) this.#versions.delete(row);
    }
    this.#sweepAt = Math.max(10_000, this.#versions.size * 2);
  }
}

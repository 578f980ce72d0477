/**
 * Plays a recorded sequence of REST listings into a world: first the state at the beginning, then one recorded change
 * after the other. Nothing is recomputed and nothing is told: `updated_at`, nested users, milestone counters and labels
 * are what was recorded, and no webhook fires. What a reader is served equals the recording.
 */

import type { Json } from "../views/view.ts";
import type { SettableClock } from "../world/clock.ts";
import { isJsonObject } from "../world/json.ts";
import type { NewPull } from "../world/new-rows.ts";
import type { PullEnd, Repository, Seconds } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";
import { readJson } from "./histories.ts";
import type {
  RecordedEnd,
  RecordedIssue,
  RecordedMilestone,
  RecordedPull,
  RecordedRepository,
  RecordedUser,
  Recording,
} from "./histories-recording.ts";

export interface SnapshotChange {
  readonly number: number;
  readonly kind: "opened" | "changed" | "closed";
  /** Whether `updated_at` moved with it. Where it did not, asking `since=` misses the change. */
  readonly bumped: boolean;
}

export interface SnapshotStep {
  readonly at: Date;
  readonly issues: readonly SnapshotChange[];
  /** Numbers of pull requests whose pull document changed. */
  readonly pulls: readonly number[];
}

export interface SnapshotOptions {
  /** Set to each step's moment, so that the world lives in the recording's time. */
  readonly clock?: SettableClock;
}

/** Loads the recording's first state. Throws when the file is no such recording. */
export async function openSnapshots(world: World, file: string, options: SnapshotOptions = {}): Promise<Snapshots> {
  const recording = await readJson(file);
  if (!isRecording(recording))
    throw new Error(`${file} is no recording of listings: it should hold {repo, base, steps}`);
  return new Snapshots(world, recording, options);
}

function isRecording(value: unknown): value is Recording {
  if (!isJsonObject(value) || typeof value.repo !== "string" || !Array.isArray(value.steps)) return false;
  return isJsonObject(value.base) && Boolean(value.base.issues);
}

export class Snapshots {
  readonly repository: Repository;
  readonly steps: number;
  readonly #world: World;
  readonly #recording: Recording;
  readonly #clock: SettableClock | undefined;
  /** The first pull document of each number: issue rows come before it, and need its id and ends. */
  readonly #firstPulls = new Map<number, RecordedPull>();
  readonly #repositories = new Map<number, RecordedRepository>();
  #done = 0;

  constructor(world: World, recording: Recording, options: SnapshotOptions) {
    this.#world = world;
    this.#recording = recording;
    this.#clock = options.clock;
    this.steps = recording.steps.length;
    for (const step of recording.steps) {
      for (const pull of step.pulls?.upsert ?? [])
        if (!this.#firstPulls.has(pull.number)) this.#firstPulls.set(pull.number, pull);
      for (const repository of step.repos ?? [])
        if (!this.#repositories.has(repository.id)) this.#repositories.set(repository.id, repository);
    }
    this.#clock?.set(Date.parse(recording.base.at));
    const own = [...this.#repositories.values()].find((repository) => repository.full_name === recording.repo);
    if (!own) throw new Error(`The recording holds no repository ${recording.repo}`);
    this.repository = this.#placeRepository(own, null);
    for (const repository of this.#repositories.values())
      if (repository !== own) this.#placeRepository(repository, this.repository.id);
    for (const issue of recording.base.issues) this.#placeIssue(issue);
    // Once a person changes a row, the recording of it no longer holds.
    world.onEvent(({ issue }) => {
      if (issue) world.recorded.delete(issue.id);
    });
  }

  get stepsLeft(): number {
    return this.steps - this.#done;
  }

  /** Applies the next recorded step; null when there is none left. */
  step(): SnapshotStep | null {
    const step = this.#recording.steps[this.#done];
    if (!step) return null;
    this.#done += 1;
    const at = new Date(step.at);
    this.#clock?.set(at.getTime());
    for (const repository of step.repos ?? []) {
      this.#repositories.set(repository.id, repository);
      this.#updateRepository(repository);
    }
    const issues = (step.issues?.upsert ?? []).map((issue) => this.#placeIssue(issue));
    for (const number of step.issues?.remove ?? []) {
      const change = this.#close(number, seconds(step.at));
      if (change) issues.push(change);
    }
    const pulls = (step.pulls?.upsert ?? []).map((pull) => this.#placePull(pull));
    return { at, issues, pulls };
  }

  #placeIssue(seen: RecordedIssue): SnapshotChange {
    const world = this.#world;
    const fields = {
      title: seen.title,
      body: seen.body,
      authorId: seen.user === null ? null : this.#placeUser(seen.user),
      state: seen.state,
      closedAt: secondsOrNull(seen.closed_at),
      locked: seen.locked,
      assigneeIds: seen.assignees.map((user) => this.#placeUser(user)),
      labelIds: seen.labels.map((label) => this.#placeLabel(label)),
      milestoneId: seen.milestone === null ? null : this.#placeMilestone(seen.milestone),
      commentsBeyond: seen.comments,
    };
    const updatedAt = seconds(seen.updated_at);
    const known = world.issue(this.repository, seen.number);
    let change: SnapshotChange;
    if (!known) {
      const pull = seen.pull_request ? { pull: this.#pullOf(seen.number) } : {};
      const placed = {
        id: seen.id,
        number: seen.number,
        repository: this.repository,
        createdAt: seconds(seen.created_at),
        updatedAt,
      };
      world.addIssue({ ...placed, ...fields, ...pull });
      change = { number: seen.number, kind: "opened", bumped: true };
    } else {
      const kind = known.state === "open" && fields.state === "closed" ? "closed" : "changed";
      change = { number: seen.number, kind, bumped: known.updatedAt !== updatedAt };
      world.changing(known);
      world.countIssue(known, -1);
      Object.assign(known, fields);
      world.countIssue(known, 1);
      world.bump(known, updatedAt);
    }
    // Counting issues moved the milestone's counters: the recorded ones hold.
    if (seen.milestone !== null) this.#placeMilestone(seen.milestone);
    this.#record(seen.id, { issue: { ...seen } });
    return change;
  }

  /** Gone from a listing of open rows. Later listings show that all of these were closed, and when. */
  #close(number: number, at: Seconds): SnapshotChange | null {
    const world = this.#world;
    const known = world.issue(this.repository, number);
    if (!known || known.state === "closed") return null;
    const later = this.#nextRecord(number);
    const recordedAt = later?.state === "closed" ? secondsOrNull(later.closed_at) : null;
    const closedAt = recordedAt !== null && recordedAt <= at ? recordedAt : at;
    const updatedAt = Math.max(known.updatedAt, closedAt);
    const bumped = updatedAt !== known.updatedAt;
    world.changing(known);
    world.countIssue(known, -1);
    known.state = "closed";
    known.closedAt = closedAt;
    world.countIssue(known, 1);
    if (isPull(known)) {
      const merged = secondsOrNull(this.#firstPulls.get(number)?.merged_at ?? null);
      if (merged !== null && merged <= closedAt) known.pull.mergedAt = merged;
    }
    world.bump(known, updatedAt);
    const issue = {
      ...world.recorded.get(known.id)?.issue,
      state: "closed",
      closed_at: iso(closedAt),
      updated_at: iso(updatedAt),
    };
    this.#record(known.id, { issue });
    return { number, kind: "closed", bumped };
  }

  #nextRecord(number: number): RecordedIssue | undefined {
    for (let at = this.#done; at < this.#recording.steps.length; at++) {
      const found = this.#recording.steps[at]?.issues?.upsert.find((issue) => issue.number === number);
      if (found) return found;
    }
    return undefined;
  }

  #placePull(seen: RecordedPull): number {
    const issue = this.#world.issue(this.repository, seen.number);
    if (!issue || !isPull(issue))
      throw new Error(`The recording shows pull request #${seen.number} before its issue row`);
    this.#world.changing(issue);
    issue.pull.head = this.#endOf(seen.head);
    issue.pull.base = this.#endOf(seen.base);
    issue.pull.mergedAt = secondsOrNull(seen.merged_at);
    issue.pull.mergeCommitSha = seen.merge_commit_sha;
    const whole = (end: RecordedEnd) => ({
      ...end,
      repo: end.repo === null ? null : this.#repositories.get(end.repo.$repo),
    });
    this.#record(issue.id, { pull: { ...seen, head: whole(seen.head), base: whole(seen.base) } });
    return seen.number;
  }

  #pullOf(number: number): NewPull {
    const seen = this.#firstPulls.get(number);
    if (!seen) throw new Error(`The recording never shows the pull request #${number}`);
    return {
      id: seen.id,
      head: this.#endOf(seen.head),
      base: this.#endOf(seen.base),
      mergeCommitSha: seen.merge_commit_sha,
    };
  }

  #endOf(end: RecordedEnd): PullEnd {
    const { label, ref, sha } = end;
    return {
      label,
      ref,
      sha,
      userId: end.user === null ? null : this.#placeUser(end.user),
      repositoryId: end.repo?.$repo ?? null,
    };
  }

  #record(issueId: number, documents: { readonly issue?: Json; readonly pull?: Json }): void {
    this.#world.recorded.set(issueId, { ...this.#world.recorded.get(issueId), ...documents });
  }

  #placeUser(seen: RecordedUser): number {
    const known = this.#world.users.get(seen.id);
    if (!known)
      return this.#world.addUser({
        id: seen.id,
        login: seen.login,
        type: seen.type,
        siteAdmin: seen.site_admin,
        createdAt: this.#begin(),
      }).id;
    if (known.login !== seen.login) {
      const before = known.login;
      known.login = seen.login;
      this.#world.loginChanged(known, before);
    }
    return known.id;
  }

  #placeLabel(seen: RecordedIssue["labels"][number]): number {
    const known = this.#world.labels.get(seen.id);
    if (known) {
      known.name = seen.name;
      known.color = seen.color;
      return known.id;
    }
    const { id, name, color } = seen;
    return this.#world.addLabel({
      id,
      name,
      color,
      isDefault: seen.default,
      repository: this.repository,
      createdAt: this.#begin(),
    }).id;
  }

  #placeMilestone(seen: RecordedMilestone): number {
    const milestone =
      this.#world.milestones.get(seen.id) ??
      this.#world.addMilestone({
        id: seen.id,
        number: seen.number,
        repository: this.repository,
        title: seen.title,
        creatorId: seen.creator === null ? null : this.#placeUser(seen.creator),
        createdAt: seconds(seen.created_at),
      });
    milestone.title = seen.title;
    milestone.description = seen.description;
    milestone.state = seen.state;
    milestone.openIssues = seen.open_issues;
    milestone.closedIssues = seen.closed_issues;
    milestone.updatedAt = seconds(seen.updated_at);
    milestone.closedAt = secondsOrNull(seen.closed_at);
    milestone.dueOn = secondsOrNull(seen.due_on);
    return milestone.id;
  }

  #placeRepository(seen: RecordedRepository, parentId: number | null): Repository {
    return this.#world.addRepository({
      id: seen.id,
      name: seen.name,
      ownerId: this.#placeUser(seen.owner),
      fork: seen.fork,
      parentId,
      ...repositoryFields(seen),
      createdAt: seconds(seen.created_at),
    });
  }

  #updateRepository(seen: RecordedRepository): void {
    const known = this.#world.repositories.get(seen.id);
    if (known) Object.assign(known, repositoryFields(seen));
  }

  #begin(): Seconds {
    return seconds(this.#recording.base.at);
  }
}

function repositoryFields(seen: RecordedRepository) {
  return {
    description: seen.description,
    homepage: seen.homepage,
    language: seen.language,
    defaultBranch: seen.default_branch,
    stargazers: seen.stargazers_count,
    forks: seen.forks_count,
    size: seen.size,
    hasIssues: seen.has_issues,
    hasWiki: seen.has_wiki,
    hasPages: seen.has_pages,
    updatedAt: seconds(seen.updated_at),
    pushedAt: secondsOrNull(seen.pushed_at),
  };
}

function seconds(time: string): Seconds {
  const ms = Date.parse(time);
  if (Number.isNaN(ms)) throw new Error(`Not a time: ${time}`);
  return ms / 1_000;
}

function secondsOrNull(time: string | null): Seconds | null {
  return time === null ? null : seconds(time);
}

function iso(at: Seconds): string {
  return new Date(at * 1_000).toISOString().replace(".000Z", "Z");
}

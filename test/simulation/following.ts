/** A reader of the feed that lives as long as the simulation, and rebuilds from it what upstream has. */
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { Context } from "../../src/context.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { fetchAndStoreViewer } from "../../src/sync/following/viewer.ts";
import { FeedReader } from "../events/feed-reader.ts";
import { Follower } from "../support/follower.ts";

const PAUSE_MS = 200;

interface FollowingStage {
  ctx: Context;
  simulator: Simulator;
  /** The mirror's web process. */
  url: string;
  repositories: readonly Repository[];
}

export class Following implements AsyncDisposable {
  readonly #stage: FollowingStage;
  readonly #follower = new Follower();
  readonly #done = new AbortController();
  /** What is followed: first copies are told of to nobody, so whatever is mirrored later is unknown. */
  readonly #repositories: readonly Repository[];
  #reading: Promise<void> = Promise.resolve();
  #lastId = "0";
  /** The stream that is read at the moment. */
  #reader: FeedReader | null = null;
  /** Every event that was heard, for a message about a difference. */
  readonly heard: string[] = [];
  /** The words with which the mirror refused the reader, who then misses events; null: it did not. */
  refusal: string | null = null;

  private constructor(stage: FollowingStage) {
    this.#stage = stage;
    this.#repositories = [...stage.repositories];
  }

  /** Begins with what upstream has, once the first copies are done. */
  static async open(stage: FollowingStage): Promise<Following> {
    const following = new Following(stage);
    for (const repository of following.#repositories) following.#follower.begin(await following.#truth(repository));
    const userId = await fetchAndStoreViewer(stage.ctx);
    const token = await createApiToken(stage.ctx, { userId, canWrite: false, permissions: ["hooks:write"] });
    following.#reading = following.#read(token);
    return following;
  }

  /** What of the feed was not read yet; null: nothing. */
  async behind(): Promise<string | null> {
    if (this.refusal !== null) return null;
    const [row] = await this.#stage.ctx.db.query<{ last: string; waiting: number; found: number }>(sql`
      select coalesce(max(id), 0)::text as last, count(*) filter (where id is null)::int as waiting,
        (select count(*) from found_changes where found_at is not null)::int as found from events`);
    const { last = "0", waiting = 0, found = 0 } = row ?? {};
    if (found > 0) return `${found} changes are found, and no events are made of them yet`;
    if (waiting > 0) return `${waiting} events have no place in the log`;
    // A sign of life says that everything before it was read.
    const lastId = this.#reader?.id ?? this.#lastId;
    return BigInt(lastId) < BigInt(last) ? `the feed is read up to ${lastId} of ${last}` : null;
  }

  /** What the reader knows otherwise than upstream has it. */
  async differences(): Promise<string[]> {
    if (this.refusal !== null) return [`The feed refused its reader: ${this.refusal}`];
    const all: string[] = [];
    for (const repository of this.#repositories)
      if (!repository.deleted) all.push(...this.#follower.differences(await this.#truth(repository)));
    return all;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#done.abort();
    await this.#reading;
  }

  async #truth({ id }: Repository) {
    const answer = await fetch(`${this.#stage.simulator.url}/-/state?repository=${id}`);
    return ((await answer.json()) as { repositories: unknown[] }).repositories[0];
  }

  async #read(token: string): Promise<void> {
    while (!this.#done.signal.aborted && this.refusal === null) {
      try {
        await this.#readOn(token);
      } catch (error) {
        // The web process was killed, or does not listen yet.
        if (!(error instanceof TypeError)) throw error;
      }
      await delay(PAUSE_MS);
    }
  }

  /** Reads until the stream ends. */
  async #readOn(token: string): Promise<void> {
    await using reader = await FeedReader.open({ url: this.#stage.url, token, query: `?since=${this.#lastId}` });
    if (reader.answer.status === 410) this.refusal = await reader.answer.text();
    if (reader.answer.status !== 200) return;
    this.#reader = reader;
    const stop = () => void reader[Symbol.asyncDispose]();
    this.#done.signal.addEventListener("abort", stop, { once: true });
    try {
      for (let told = await reader.next(); told !== null && told.type !== "tain.end"; told = await reader.next()) {
        const [, , event] = told.type.split(".");
        const receivedAt = Date.parse(told.time);
        this.heard.push(JSON.stringify(told));
        this.#follower.hear({ event, payload: told.data, receivedAt, isMade: told.tainmade === true });
      }
    } finally {
      this.#lastId = reader.id ?? this.#lastId;
      this.#reader = null;
      this.#done.signal.removeEventListener("abort", stop);
    }
  }
}

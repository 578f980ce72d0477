import { EVENTS_TOLD } from "../../events/log.ts";
import type { LogEnd } from "../../events/log-end.ts";
import { type Change, type ChangesOf, readChanges } from "../../events/log-reads.ts";
import type { ApiContext } from "../call/call.ts";
import type { Announcements } from "./announcements.ts";
import { Bell } from "./bell.ts";

/** How many events one read of the log returns at most. */
const CHANGES_A_READ = 1_000;

/** The changes that the log of events reports to one subscriber. What changed while nobody read is reported once. */
class Stream implements AsyncIterableIterator<Change> {
  readonly #readDb: ApiContext["readDb"];
  readonly #end: LogEnd;
  readonly #wanted: ChangesOf;
  readonly #bell = new Bell();
  readonly #leaving = new DisposableStack();
  #waiting: Change[] = [];
  /** The place in the log up to which all was reported. Null: the stream has not begun. */
  #place: number | null = null;

  constructor({ readDb, end }: { readDb: ApiContext["readDb"]; end: LogEnd }, wanted: ChangesOf) {
    this.#readDb = readDb;
    this.#end = end;
    this.#wanted = wanted;
  }

  /**
   * Begins the stream. It reports whatever is committed after this has returned. @throws when Postgres cannot be
   * reached
   */
  async begin(announcements: Announcements): Promise<this> {
    const joined = await announcements.join({
      onText: (text) => {
        if (text === EVENTS_TOLD) this.#bell.ring();
      },
      onEnd: () => this.end(),
    });
    if (this.#leaving.disposed) joined[Symbol.dispose]();
    else this.#leaving.use(joined);
    this.#place = (await this.#end.now()).place;
    return this;
  }

  end(): void {
    if (this.#leaving.disposed) return;
    this.#leaving.dispose();
    this.#bell.ring();
  }

  async next(): Promise<IteratorResult<Change>> {
    while (!this.#leaving.disposed) {
      const change = this.#waiting.shift();
      if (change) return { value: change, done: false };
      await this.#bell.rung();
      if (!this.#leaving.disposed) await this.#read();
    }
    return { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<Change>> {
    this.end();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #read(): Promise<void> {
    const { place: end, isCertain } = await this.#end.now();
    const after = this.#place ?? end;
    const page = await readChanges(this.#readDb, { after, upTo: end, limit: CHANGES_A_READ }, this.#wanted);
    this.#waiting = [...new Map(page.map((one) => [one.number, one])).values()];
    this.#place = page.length < CHANGES_A_READ ? Math.max(end, after) : (page.at(-1)?.id ?? end);
    // There may be more events by now, and nothing else would announce them.
    if (page.length === CHANGES_A_READ || !isCertain) this.#bell.ring();
  }
}

/** The changes that subscribers of this process wait for. They read the same log as the feed. */
export class ChangeStreams {
  readonly #log: { readDb: ApiContext["readDb"]; end: LogEnd };
  readonly #announcements: Announcements;

  constructor(log: { readDb: ApiContext["readDb"]; end: LogEnd }, announcements: Announcements) {
    this.#log = log;
    this.#announcements = announcements;
  }

  /**
   * Opens a stream. It reports whatever is committed after this has returned. @throws when Postgres cannot be reached
   */
  async open(wanted: ChangesOf): Promise<AsyncIterableIterator<Change>> {
    const stream = new Stream(this.#log, wanted);
    try {
      return await stream.begin(this.#announcements);
    } catch (error) {
      stream.end();
      throw error;
    }
  }
}

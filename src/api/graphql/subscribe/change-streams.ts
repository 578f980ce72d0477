import { type Change, listenForChanges } from "../../../mirror/store/announcement.ts";
import type { ApiContext } from "../../call.ts";

/**
 * A stream that is not read fast enough is ended. Its reader subscribes again and starts from the state at that time.
 */
const MAX_WAITING = 1_000;

/** The changes that one subscriber waits for. Each number is told once, however often it changed while nobody read. */
class Stream implements AsyncIterableIterator<Change> {
  readonly #wanted: Pick<Change, "repositoryId" | "kind">;
  readonly #onEnd: (stream: Stream) => void;
  readonly #waiting = new Map<number, Change>();
  #isOver = false;
  #wake: (() => void) | null = null;

  constructor(wanted: Pick<Change, "repositoryId" | "kind">, onEnd: (stream: Stream) => void) {
    this.#wanted = wanted;
    this.#onEnd = onEnd;
  }

  tell(change: Change): void {
    if (change.repositoryId !== this.#wanted.repositoryId || change.kind !== this.#wanted.kind) return;
    this.#waiting.set(change.number, change);
    if (this.#waiting.size > MAX_WAITING) this.end();
    this.#wake?.();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd(this);
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<Change>> {
    while (!this.#isOver) {
      const [change] = this.#waiting.values();
      if (change) {
        this.#waiting.delete(change.number);
        return { value: change, done: false };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
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
}

/** The changes for all subscribers of this process, over one connection. It is open while there are subscribers. */
export class ChangeStreams implements AsyncDisposable {
  readonly #ctx: Pick<ApiContext, "config" | "log">;
  readonly #streams = new Set<Stream>();
  #listening: Promise<AsyncDisposable> | null = null;
  #isOver = false;

  constructor(ctx: Pick<ApiContext, "config" | "log">) {
    this.#ctx = ctx;
  }

  /** Whatever is committed after this has answered is told. @throws when Postgres cannot be reached */
  async open(wanted: Pick<Change, "repositoryId" | "kind">): Promise<AsyncIterableIterator<Change>> {
    const stream = new Stream(wanted, (ended) => this.#forget(ended));
    if (this.#isOver) {
      stream.end();
      return stream;
    }
    this.#streams.add(stream);
    this.#listening ??= listenForChanges(this.#ctx.config.databaseUrl, {
      onChange: (change) => {
        for (const one of this.#streams) one.tell(change);
      },
      onLost: (error) => {
        this.#ctx.log.warn({ err: error }, "Subscriptions are ended: the connection that tells of changes is lost");
        this.#listening = null;
        this.#endAll();
      },
    });
    try {
      await this.#listening;
      return stream;
    } catch (error) {
      this.#listening = null;
      this.#endAll();
      throw error;
    }
  }

  /** Ends all streams. One that is opened later is over from its beginning. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#endAll();
    await this.#close();
  }

  #endAll(): void {
    for (const stream of [...this.#streams]) stream.end();
  }

  #forget(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#close().catch((error: unknown) => this.#ctx.log.warn({ err: error }, "A connection was not closed in order"));
  }

  async #close(): Promise<void> {
    const listening = this.#listening;
    this.#listening = null;
    // If the connection could not be opened, the subscriber has got the error.
    const open = await listening?.catch(() => null);
    await open?.[Symbol.asyncDispose]();
  }
}

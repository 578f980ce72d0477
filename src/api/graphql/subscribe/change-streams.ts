import { announcedChange, type Change } from "../../../mirror/store/announcement.ts";
import type { Announcements } from "../../streams/announcements.ts";

/**
 * A stream that is not read fast enough is ended. Its reader subscribes again and starts from the state at that time.
 */
const MAX_WAITING = 1_000;

/** The changes that one subscriber waits for. Each number is told once, however often it changed while nobody read. */
class Stream implements AsyncIterableIterator<Change> {
  readonly #wanted: Pick<Change, "repositoryId" | "kind">;
  readonly #onEnd: () => void;
  readonly #waiting = new Map<number, Change>();
  #isOver = false;
  #wake: (() => void) | null = null;

  constructor(wanted: Pick<Change, "repositoryId" | "kind">, onEnd: () => void) {
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
    this.#onEnd();
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

/** The changes that subscribers of this process wait for. */
export class ChangeStreams {
  readonly #announcements: Announcements;

  constructor(announcements: Announcements) {
    this.#announcements = announcements;
  }

  /** Whatever is committed after this has answered is told. @throws when Postgres cannot be reached */
  async open(wanted: Pick<Change, "repositoryId" | "kind">): Promise<AsyncIterableIterator<Change>> {
    const leaving = new DisposableStack();
    const stream = new Stream(wanted, () => leaving.dispose());
    const joined = await this.#announcements.join({
      onText: (text) => {
        const change = announcedChange(text);
        if (change) stream.tell(change);
      },
      onEnd: () => stream.end(),
    });
    if (leaving.disposed) joined[Symbol.dispose]();
    else leaving.use(joined);
    return stream;
  }
}

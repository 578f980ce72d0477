import { listen } from "../../../db/announcement.ts";
import type { ApiContext } from "../call/call.ts";

/** Who listens to what committed transactions tell. */
export interface Listener {
  onText: (text: string) => void;
  /** Nothing more is heard: the connection is lost, or the process ends. */
  onEnd: () => void;
}

/**
 * Announcements of committed transactions, for all streams of this process, over one connection. It is open while there
 * are listeners.
 */
export class Announcements implements AsyncDisposable {
  readonly #ctx: Pick<ApiContext, "config" | "log">;
  readonly #listeners = new Set<Listener>();
  #listening: Promise<AsyncDisposable> | null = null;
  #isOver = false;

  constructor(ctx: Pick<ApiContext, "config" | "log">) {
    this.#ctx = ctx;
  }

  /**
   * Whatever is committed after this has answered is heard, until the answer is disposed of.
   * @throws when Postgres cannot be reached
   */
  async join(listener: Listener): Promise<Disposable> {
    if (this.#isOver) {
      listener.onEnd();
      return { [Symbol.dispose]: () => {} };
    }
    this.#listeners.add(listener);
    const listening = this.#listening ?? this.#listen();
    this.#listening = listening;
    try {
      await listening;
      return { [Symbol.dispose]: () => this.#forget(listener) };
    } catch (error) {
      // Others may wait for another connection by now.
      this.#listeners.delete(listener);
      this.#lose(listening);
      throw error;
    }
  }

  #listen(): Promise<AsyncDisposable> {
    const listening = listen(this.#ctx.config.databaseDirectUrl ?? this.#ctx.config.databaseUrl, {
      onText: (text) => {
        for (const one of this.#listeners) one.onText(text);
      },
      onLost: (error) => {
        this.#ctx.log.warn({ err: error }, "The connection that announces changes is lost; its streams are ended");
        this.#lose(listening);
      },
    });
    return listening;
  }

  /** Ends the streams of this connection. Those of a later one go on. */
  #lose(listening: Promise<AsyncDisposable>): void {
    if (this.#listening !== listening) return;
    this.#listening = null;
    this.#endAll();
  }

  /** Ends all streams. One that is opened later is over from its beginning. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#endAll();
    await this.#close();
  }

  #endAll(): void {
    const ended = [...this.#listeners];
    this.#listeners.clear();
    for (const { onEnd } of ended) onEnd();
  }

  #forget(listener: Listener): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
    this.#close().catch((error: unknown) => this.#ctx.log.warn({ err: error }, "A connection was not closed in order"));
  }

  async #close(): Promise<void> {
    const listening = this.#listening;
    this.#listening = null;
    // If the connection could not be opened, the listener has got the error.
    const open = await listening?.catch(() => null);
    await open?.[Symbol.asyncDispose]();
  }
}

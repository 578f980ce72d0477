import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { mostEntries } from "../../work/bounded.ts";
import type { Pace } from "../../work/pace.ts";
import { Thread, TooMuchWorkError } from "../../work/thread.ts";
import { type Rendered, type TextHome, unformatted } from "./rendered.ts";

/** The processor time for all bodies of one answer. 100 bodies of 64 KiB of plain prose take a fraction of it. */
const BUDGET_MS = 1_000;
/** How long an answer waits for its bodies, however busy the thread and the processor are. */
const BODIES_PATIENCE_MS = 10_000;
/** How late a thread may be before it is ended. */
const THREAD_GRACE_MS = 2_000;
/** The longest body. The service takes no longer one, so a longer text is not its own. */
const MAX_BODY_CHARACTERS = 65_536;
/** How many texts may wait. Each answer waits with one text at a time. */
const MOST_WAITING = 50;

const EMPTY_RENDERED: Rendered = { html: "", text: "" };

export interface MarkdownTask {
  text: string;
  home: TextHome | null;
  budgetMs: number;
}

/** The outcome of a text. `rendered` is null if the text is too much. */
export interface MarkdownDone {
  rendered: Rendered | null;
  cpuMs: number;
}

/** How much time an answer has left. */
export interface Allowance {
  cpuMs: number;
  /** When the time is over, by the monotonic clock. */
  until: number;
}

/** Renders Markdown as safe HTML on a thread, each text once. */
export class MarkdownRenderer {
  readonly #rendered = new LRUCache<string, Rendered>({
    maxSize: 32 * 1024 * 1024,
    sizeCalculation: ({ html, text }) => html.length + text.length + 100,
  });
  /** The texts that took too long, by their digests. They are not tried again. */
  readonly #tooSlow = new LRUCache<string, true>(mostEntries(20_000));
  readonly #thread: Thread<MarkdownTask, MarkdownDone>;
  readonly #pace: Pace;
  readonly #budgetMs: number;

  constructor(pace: Pace, budgetMs = BUDGET_MS) {
    this.#pace = pace;
    this.#budgetMs = budgetMs;
    const module = new URL("./markdown-thread.ts", import.meta.url);
    this.#thread = new Thread(module, { budgetMs: budgetMs + THREAD_GRACE_MS });
  }

  /** The allowance for all bodies of one answer. */
  allowance(): Allowance {
    return { cpuMs: this.#budgetMs, until: performance.now() + Math.max(BODIES_PATIENCE_MS, this.#budgetMs) };
  }

  /**
   * Renders each text, in order. Texts that are too long or slow to parse are shown unformatted. `isFinal`: a later
   * rendering would be the same.
   */
  async render(
    texts: readonly { text: string; home: TextHome | null }[],
    left = this.allowance(),
  ): Promise<{ shown: Rendered[]; isFinal: boolean }> {
    let isFinal = true;
    const shown: Rendered[] = [];
    for (const { text, home } of texts) {
      if (this.#pace.isOver()) await this.#pace.turn();
      const one = isTooLong(text) ? unformatted(text) : await this.#one(text, home, left);
      if (one === null) isFinal = false;
      shown.push(one ?? unformatted(text));
    }
    return { shown, isFinal };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  /** Renders one text. Null: there was no time. */
  async #one(text: string, home: TextHome | null, left: Allowance): Promise<Rendered | null> {
    if (text === "") return EMPTY_RENDERED;
    const digest = createHash("sha256")
      .update(JSON.stringify([home, text]))
      .digest("base64");
    const known = this.#rendered.get(digest);
    if (known) return known;
    if (this.#tooSlow.has(digest)) return unformatted(text);
    const isBusy = this.#thread.waiting >= MOST_WAITING;
    if (isBusy || left.cpuMs <= 0 || performance.now() > left.until) return null;
    // The time that this text itself takes is the same, whatever stands before it in the answer.
    const done = await this.#thread.run({ text, home, budgetMs: this.#budgetMs }).catch(whileTooMuch);
    const rendered = done?.rendered ?? null;
    left.cpuMs -= done?.rendered ? done.cpuMs : this.#budgetMs;
    if (rendered) this.#rendered.set(digest, rendered);
    else this.#tooSlow.set(digest, true);
    return rendered ?? unformatted(text);
  }
}

/** Null: the text is too much. @throws the error, if it is a bug of ours */
function whileTooMuch(error: unknown): null {
  if (error instanceof TooMuchWorkError) return null;
  throw error;
}

/** Whether a text is longer than a body may be. One character may take two units of a string. */
function isTooLong(text: string): boolean {
  if (text.length <= MAX_BODY_CHARACTERS) return false;
  return text.length > 2 * MAX_BODY_CHARACTERS || Array.from(text).length > MAX_BODY_CHARACTERS;
}

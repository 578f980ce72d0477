import { levelOf, wholeReasonOf } from "../../failure.ts";
import { forgetNote, putNote } from "../../operations/notes.ts";
import { Outage } from "../../operations/outage.ts";
import type { Stores } from "../../stores.ts";
import type { UpstreamUnavailableError } from "../protocol/errors.ts";

/** A note that is not renewed is over: nobody asks upstream any more. */
const NOTED_MS = 24 * 3_600_000;
/** How often, at most, a process renews the note, or looks whether there is another process's to take away. */
const PACE_MS = 5_000;

/**
 * Notes in Redis and in the log since when upstream cannot be reached, or does not answer in time. The next answer to
 * any process ends that. An answer of any status is one: what upstream refuses has its own problems.
 */
export class Reach {
  readonly #ctx: Pick<Stores, "config" | "redis" | "clock" | "log">;
  readonly #outage: Outage;
  /** Whether this process has had no answer since it noted the outage. */
  #isAway = false;
  /** By the monotonic clock. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  /** The newest note that is still to be written: it replaces older ones. */
  #next: (() => Promise<void>) | null = null;
  #writing: Promise<void> | null = null;

  constructor(ctx: Pick<Stores, "config" | "redis" | "clock" | "log">) {
    this.#ctx = ctx;
    this.#outage = new Outage(ctx.log, "warn", {
      begins: "Upstream does not answer",
      ends: "Upstream answers again",
    });
  }

  failed(error: UpstreamUnavailableError): void {
    if (error.outage !== "unreachable" && error.outage !== "timed-out") return;
    this.#outage.missed(error);
    if (this.#isAway && this.#isQuiet()) return;
    this.#isAway = true;
    this.#write(() => putNote(this.#ctx, "upstream", { reason: wholeReasonOf(error), keptMs: NOTED_MS }));
  }

  answered(): void {
    this.#outage.met();
    if (!this.#isAway && this.#isQuiet()) return;
    this.#isAway = false;
    this.#write(() => forgetNote(this.#ctx, "upstream"));
  }

  /** Waits for the last note. */
  async close(): Promise<void> {
    await this.#writing;
  }

  #isQuiet(): boolean {
    return performance.now() < this.#quietUntil;
  }

  /** No request waits for a note. */
  #write(note: () => Promise<void>): void {
    this.#quietUntil = performance.now() + PACE_MS;
    this.#next = note;
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    for (let note = this.#next; note !== null; note = this.#next) {
      this.#next = null;
      await note().catch((error: unknown) =>
        this.#ctx.log[levelOf(error, "debug")]({ err: error }, "It could not be noted whether upstream answers"),
      );
    }
    this.#writing = null;
  }
}

/**
 * One time for all processes of a simulation: real time plus the ms that a file says. A program that loads this module
 * first (`node --import`) gets that time, and does not know it.
 * Only the date moves. Timers, time-outs and what Redis and Postgres measure by themselves stay real, because the
 * machine does not become faster. All processes see a step at the same instant, so clocks do not drift apart. Each
 * process's clock may also be wrong by a small amount that never changes.
 */

import { closeSync, openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { flushCompileCache } from "node:module";

/** The setting that tells the mirror's programs where the file is. */
export const CLOCK_FILE = "SIMULATION_CLOCK";
/** The setting that says by how many ms a program's clock is wrong, as the clocks of two machines differ. */
export const CLOCK_SKEW = "SIMULATION_CLOCK_SKEW_MS";

/** Replaces this process's `Date` by one that follows the file. `jumps`: it is one of the mirror's. */
function follow(path: string, { skewMs, jumps }: { skewMs: number; jumps: boolean }): void {
  const file = openSync(path, "r");
  const buffer = new Float64Array(2);
  const real = Date.now.bind(Date);
  const now = () => {
    readSync(file, buffer, 0, 16, 0);
    return real() + (buffer[0] ?? 0) + skewMs + (jumps ? (buffer[1] ?? 0) : 0);
  };
  const construct = (target: DateConstructor, args: unknown[], as: unknown) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, as as DateConstructor) as Date;
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, as) => construct(target, args, as),
    apply: () => new Date(now()).toString(),
    get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
}

/** The time of a simulation. It only ever goes forward. */
export interface SharedClock extends Disposable {
  readonly path: string;
  advance(ms: number): void;
  /** Has the clocks of the mirror's programs run ahead of upstream's by so much; 0: they are put right. */
  jump(ms: number): void;
  /** Goes back to real time for the next simulation. No program of the mirror may run then. */
  reset(): void;
  /** By how many ms it is ahead of real time. */
  readonly aheadMs: number;
}

/** Makes the file at `path`, and gives its time to this process, which can do this only once. */
export function openClock(path: string): SharedClock {
  const clock = makeClock(path);
  follow(path, { skewMs: 0, jumps: false });
  return clock;
}

/** Makes the file at `path`, for other programs alone: this process keeps real time. */
export function makeClock(path: string): SharedClock {
  writeFileSync(path, new Float64Array(2));
  const file = openSync(path, "r+");
  let aheadMs = 0;
  const set = (ms: number) => {
    aheadMs = ms;
    writeSync(file, new Float64Array([aheadMs]), 0, 8, 0);
  };
  return {
    path,
    get aheadMs() {
      return aheadMs;
    },
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`Time goes forward: ${ms}`);
      set(aheadMs + Math.round(ms)); // A date counts whole milliseconds.
    },
    jump: (ms) => void writeSync(file, new Float64Array([ms]), 0, 8, 8),
    reset() {
      this.jump(0);
      set(0);
    },
    [Symbol.dispose]: () => closeSync(file),
  };
}

const given = process.env[CLOCK_FILE];
if (given !== undefined) {
  follow(given, { skewMs: Number(process.env[CLOCK_SKEW] ?? 0), jumps: true });
  // Node.js stores what a program has compiled only when the program ends by itself, and most of these programs are
  // killed.
  setTimeout(flushCompileCache, 3_000).unref();
}

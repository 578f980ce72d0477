/**
 * A seeded stream of what people do: they open, edit, label, comment, close, merge, rename, transfer, delete. Every
 * step is one of the world's own changes, so rules, counters and webhooks are those of any other change.
 *
 * The same seed over the same world gives the same stream, driven by the timer or by hand.
 */
import { seededRandom } from "../world/random.ts";
import { Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { type Deed, FREQUENCIES, LIVE_KINDS, type LiveKind, perform } from "./acts.ts";
import { Stage } from "./stage.ts";

export interface LiveOptions {
  /** Steps a second. 0: no timer, only `step()`. */
  readonly ratePerSecond: number;
  readonly seed: number;
  /**
   * Only these. Default: as often as they happen in real repositories, and none of those that happen only when asked
   * for.
   */
  readonly kinds?: readonly LiveKind[];
}

export interface Live {
  /** What was done next; null when nothing can be done in this world. */
  step(): Deed | null;
  /** Ends the timer. Steps by hand stay possible. */
  stop(): void;
  /** Steps done so far. */
  readonly count: number;
  /** Resolves once stopped. Rejects when a step failed: that is a bug, and the stream has ended. */
  readonly done: Promise<void>;
}

// A delayed timer catches up with at most this much of the stream, and skips the rest.
const CATCH_UP_MS = 2_000;
const LEAST_TICK_MS = 10;

/** Starts the stream. Throws when the rate is no rate or a kind does not exist. */
export function startLive(world: World, options: LiveOptions): Live {
  const { ratePerSecond } = options;
  if (!(ratePerSecond >= 0 && ratePerSecond <= 10_000))
    throw new RangeError(`ratePerSecond is from 0 to 10,000, not ${ratePerSecond}`);
  const weights = weightsOf(options.kinds);
  const random = seededRandom(options.seed);
  const stage = new Stage(world, random);
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  let count = 0;

  const step = (): Deed | null => {
    // The picked act may be impossible just now (nothing to reopen); then another one happens.
    for (let attempt = 0; attempt < 50; attempt++) {
      const kind = pickWeighted(weights, random.next());
      try {
        const deed = perform(stage, kind);
        if (!deed) continue;
        count += 1;
        return deed;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error; // People are refused too: they try something else.
      }
    }
    return null;
  };

  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
    resolve();
  };
  if (ratePerSecond > 0) {
    let owed = 0;
    let last = performance.now();
    timer = setInterval(
      () => {
        const now = performance.now();
        owed += (Math.min(now - last, CATCH_UP_MS) / 1_000) * ratePerSecond;
        last = now;
        try {
          for (; owed >= 1; owed -= 1) step();
        } catch (error) {
          clearInterval(timer);
          reject(error);
        }
      },
      Math.max(LEAST_TICK_MS, 1_000 / ratePerSecond),
    );
    timer.unref();
  }
  return {
    step,
    stop,
    get count() {
      return count;
    },
    done,
  };
}

interface Weighted {
  readonly kind: LiveKind;
  readonly upTo: number;
}

function weightsOf(kinds: readonly LiveKind[] | undefined): readonly Weighted[] {
  for (const kind of kinds ?? []) {
    if (!LIVE_KINDS.includes(kind)) throw new Error(`"${kind}" is nothing that happens: ${LIVE_KINDS.join(", ")}`);
  }
  let sum = 0;
  const weights: Weighted[] = [];
  for (const kind of LIVE_KINDS) {
    const frequency = FREQUENCIES[kind];
    if (kinds ? !kinds.includes(kind) : frequency === 0) continue;
    sum += kinds ? frequency || 1 : frequency;
    weights.push({ kind, upTo: sum });
  }
  return weights.map(({ kind, upTo }) => ({ kind, upTo: upTo / sum }));
}

function pickWeighted(weights: readonly Weighted[], roll: number): LiveKind {
  const picked = weights.find(({ upTo }) => roll < upTo);
  if (!picked) throw new RangeError("No kind is left to pick from");
  return picked.kind;
}

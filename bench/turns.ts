import type { Loader } from "./load.ts";
import { type Cost, costOf, measureSlice, type Side } from "./serving.ts";

/** A server as it is asked in its turns. */
export interface TurnSide extends Side {
  connections?: number;
}

export interface Turns {
  warmUps: number;
  turns: number;
  seconds: number;
  /** Before each turn; `place` is the side's. */
  prepare?: (place: number, turn: number) => Promise<unknown>;
}

/**
 * Each of four sides comes once at each place, and once behind each of the others, but never behind itself: what has
 * just been asked is quicker when it is asked again. To and fro would give that to the first and the last of them.
 */
const ORDERS = [
  [0, 1, 3, 2],
  [1, 2, 0, 3],
  [2, 3, 1, 0],
  [3, 0, 2, 1],
];

/**
 * What each side's answers cost, turn by turn; the first ones, before code is compiled, count for nothing. Turns are
 * short, so that some meet a quiet machine. Their number is a multiple of four.
 */
export async function takeTurns(
  loader: Loader,
  sides: readonly TurnSide[],
  { warmUps, turns, seconds, prepare }: Turns,
): Promise<Cost[][]> {
  const costs: Cost[][] = sides.map(() => []);
  for (let turn = -warmUps; turn < turns; turn++) {
    for (const at of ORDERS[(turn + warmUps) % ORDERS.length] ?? []) {
      const side = sides[at];
      if (!side) continue;
      await prepare?.(at, turn);
      const sum = { answers: 0, seconds: 0, cpuSeconds: 0 };
      await measureSlice(loader, sum, side, { connections: side.connections ?? 16, seconds });
      if (turn >= 0) costs[at]?.push(costOf(sum));
    }
  }
  return costs;
}

/**
 * The best tenth of a side's turns. Other work on the machine only ever adds to what an answer costs, so the least
 * disturbed turns are compared. Pure.
 */
export function bestOf(costs: readonly Cost[]): Cost {
  return {
    perSecond: -lowestTenth(costs.map(({ perSecond }) => -perSecond)),
    cpuMicros: lowestTenth(costs.map(({ cpuMicros }) => cpuMicros)),
  };
}

/** The value below which a tenth of them lies. */
function lowestTenth(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 10)] ?? Number.NaN;
}

/**
 * Which ways of a network are cut, and when. The plan follows from the seed alone, so that it can be played again.
 * Pure.
 */
import { seededRandom } from "../../src/simulator/world/random.ts";
import type { Way } from "../support/network.ts";

/** The sites where Tain's processes run. */
export const SITES = ["north", "east", "south", "west"] as const;
/** What the processes need, each at a site of its own. Upstream is this process. */
export const NEEDS = ["postgres", "redis", "upstream"] as const;
const ENDS: readonly string[] = [...SITES, ...NEEDS];

export interface Cut {
  readonly atMs: number;
  readonly forMs: number;
  /** `north-postgres` is both directions, `north>postgres` one, and `north` or `redis` all ways of that site. */
  readonly name: string;
  readonly ways: readonly Way[];
}

/** The time between the beginnings of two cuts. Most cuts last longer than this, so two or three hold at once. */
const PAUSE_MS = { least: 2_000, most: 12_000 };
/** Short cuts end before any process's time-out, and long ones well after it. */
const SHORT_MS = { least: 500, most: 6_000 };
const LONG_MS = { least: 8_000, most: 40_000 };

export function cutsOf({ seed, forMs }: { seed: number; forMs: number }): Cut[] {
  const random = seededRandom(seed);
  const cuts: Cut[] = [];
  for (let atMs = random.int(1_000, 3_000); atMs < forMs; atMs += random.int(PAUSE_MS.least, PAUSE_MS.most)) {
    const { least, most } = random.chance(0.4) ? SHORT_MS : LONG_MS;
    cuts.push({ atMs, forMs: Math.min(random.int(least, most), forMs - atMs), ...waysOf(random) });
  }
  return cuts;
}

function waysOf(random: ReturnType<typeof seededRandom>): Pick<Cut, "name" | "ways"> {
  if (random.chance(0.25)) {
    const alone = random.pick(ENDS);
    const others = (SITES as readonly string[]).includes(alone) ? NEEDS : SITES;
    return { name: alone, ways: others.flatMap((other) => both(alone, other)) };
  }
  const [site, need] = [random.pick(SITES), random.pick(NEEDS)];
  if (random.chance(0.7)) return { name: `${site}-${need}`, ways: both(site, need) };
  const [from, to] = random.chance(0.5) ? [site, need] : [need, site];
  return { name: `${from}>${to}`, ways: [{ from, to }] };
}

function both(one: string, other: string): Way[] {
  return [
    { from: one, to: other },
    { from: other, to: one },
  ];
}

/** The cuts that hold at a moment. */
export function cutsAt(cuts: readonly Cut[], atMs: number): Cut[] {
  return cuts.filter((cut) => cut.atMs <= atMs && atMs < cut.atMs + cut.forMs);
}

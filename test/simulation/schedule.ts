/**
 * What happens in one simulation, step by step. The plan follows from the seed alone, so that it can be played again.
 * Pure.
 */

import type { FaultSettings } from "../../src/simulator/faults/faults.ts";
import type { UncertainBumps } from "../../src/simulator/world/bumps.ts";
import { type Random, seededRandom } from "../../src/simulator/world/random.ts";
import type { FaultKind } from "./fault-kinds.ts";
import { ODDITY_NAMES, type Oddity } from "./oddities.ts";
import { lastWeather, limited, MAX_LAG_MS, moodOf, oddAnswers, weatherOf } from "./weather.ts";

export type Part = "web" | "worker" | "scheduler";

export type Deed =
  | {
      readonly kind: "weather";
      readonly settings: FaultSettings;
      /** The status with which upstream says that a limit is exceeded. */
      readonly limitStatus: 403 | 429;
    }
  | { readonly kind: "redeliver"; readonly count: number }
  | { readonly kind: "quota"; readonly remaining: number }
  | { readonly kind: "rotate" }
  | { readonly kind: "revoke"; readonly index: number; readonly awaySteps: number }
  | { readonly kind: "kill"; readonly part: Part; readonly index: number; readonly awaySteps: number }
  | { readonly kind: "flush" }
  | { readonly kind: "jump"; readonly aheadMs: number; readonly awaySteps: number }
  | { readonly kind: "parts" | "archive"; readonly index: number; readonly awaySteps: number }
  | { readonly kind: "odd"; readonly oddity: Oddity; readonly index: number }
  | { readonly kind: "reuse" }
  | { readonly kind: "twice" }
  | { readonly kind: "redis" | "postgres"; readonly awayMs: number };

interface Step {
  /** By how much the shared clock goes forward before the deeds. */
  readonly advanceMs: number;
  readonly deeds: readonly Deed[];
  /** For how long, in real time, the mirror is left to itself after the deeds. */
  readonly pauseMs: number;
}

export interface Meeting {
  /**
   * - workers: several workers apply changes of the same rows at once.
   * - reads: a read that was to settle contradictions shows an older state.
   * - pages: a long list changes between two of its pages.
   * - moments: a replica shows the first of two changes of a second. No webhook tells of either.
   * - ends: all workers are killed between a page of a list and the details of its rows.
   */
  readonly kind: "workers" | "reads" | "pages" | "moments" | "ends";
  /** By how much the replicas that answer meanwhile are behind. */
  readonly lagMs: number;
}

export interface Plan {
  readonly seed: number;
  readonly workers: number;
  /** True: no catch-up comes before the mirror is compared for the first time, and no webhook is lost. */
  readonly isAlone: boolean;
  /** How often an audit runs: several times during the simulation, or only once at its end. */
  readonly auditPeriodMs: number;
  /** By how much the replicas are behind while the last audit reads what has changed just before; 0: they are not. */
  readonly auditLagMs: number;
  /** By how much each process's clock is wrong. */
  readonly skewsMs: Readonly<Record<string, number>>;
  /** Whether a change moves `updated_at`, for each kind of change for which the service's rule is not known. */
  readonly bumps: Readonly<Partial<UncertainBumps>>;
  readonly steps: readonly Step[];
  /** The meetings are played after the steps. */
  readonly meetings: readonly Meeting[];
}

export interface PlanOptions {
  readonly seed: number;
  readonly steps: number;
  readonly workers: number;
  readonly faults: ReadonlySet<FaultKind>;
}

/** How likely each kind of deed is in one step. `AT_MOST` bounds those that take real time for the whole simulation. */
const FREQUENCIES = {
  redeliver: 0.02,
  quota: 0.002,
  rotate: 0.003,
  revoke: 0.006,
  kill: 0.012,
  flush: 0.006,
  redis: 0.003,
  postgres: 0.003,
  parts: 0.005,
  jump: 0.004,
  archive: 0.004,
  reuse: 0.006,
  odd: 0.03,
};
/** How often each of these happens at most in a simulation, because each costs seconds of real time. */
const AT_MOST = { redis: 1, postgres: 1, rotate: 1, kill: 6, jump: 1, reuse: 2 };
/** How many tokens the mirror has. */
export const TOKENS = 2;
/** The average number of steps after which the weather changes. */
const WEATHER_STEPS = 25;
/** The share of the steps that come last. No later change wipes their traces away. */
const LAST_SHARE = 0.25;
/** How often a step changes something twice in one moment, where no catch-up puts right what goes wrong. */
const TWICE = 0.15;
/** The last changes, so many, are made only to move the watermarks. */
const LAST_WORDS = 4;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** The number of meetings of each kind. */
const MEETINGS = 4;
const SHORT_LAG_MS = 2_000;
/**
 * With this lag and two clocks that are wrong, a read still comes soon after a deletion: sooner than the longest lag
 * that the mirror reckons with.
 */
const LONG_LAG_MS = 7_000;
const MAX_SKEW_MS = 900;

/**
 * These faults lose webhooks or have everything read anew. Schedules that Redis has forgotten, or that are set again,
 * run at once.
 */
const READ_AFTER: ReadonlySet<FaultKind> = new Set([
  ...(["drop", "fail", "kill", "redis", "postgres"] as const),
  ...(["flush", "rotate", "revoke", "parts", "jump"] as const),
  ...(["archive", "reuse", "rows"] as const),
]);

export function planOf({ seed, steps, workers, faults: wished }: PlanOptions): Plan {
  const isAlone = seed % 3 === 2 && wished.has("alone");
  const faults = isAlone ? wished.difference(READ_AFTER) : wished;
  const random = seededRandom(seed);
  const left: Record<string, number> = { ...AT_MOST };
  // Kinds of deeds that were added later draw from random numbers of their own. So an old seed stays the same in all
  // else.
  const later = seededRandom(seed * 104_729 + 1);
  const moods = seededRandom(seed * 1_299_709 + 2);
  const limits = seededRandom(seed * 15_485_863 + 3);
  const happens = (kind: keyof typeof FREQUENCIES, drawn = random) => {
    const hit = drawn.chance(FREQUENCIES[kind]);
    if (!hit || !faults.has(kind)) return false;
    const count = left[kind] ?? Number.POSITIVE_INFINITY;
    left[kind] = count - 1;
    return count > 0;
  };
  const twos = seededRandom(seed * 49_979_687 + 4);
  const jumps = seededRandom(seed * 98_764_321 + 6);
  const switches = seededRandom(seed * 86_028_121 + 5);
  const odds = seededRandom(seed * 67_867_967 + 7);
  const answers = seededRandom(seed * 32_452_843 + 8);
  const ofAll = (weather: typeof weatherOf) =>
    oddAnswers(answers, faults, limited(limits, faults, moodOf(moods, faults, weather(random, faults))));
  const auditPeriodMs = random.chance(0.25) ? MINUTE_MS : DAY_MS;
  const planned: Step[] = [];
  for (let index = 0; index < steps; index++) {
    const deeds: Deed[] = [];
    const isLast = index >= steps - steps * LAST_SHARE;
    if (isLast && planned.length === Math.ceil(steps - steps * LAST_SHARE))
      deeds.push({
        kind: "weather",
        settings: ofAll(lastWeather),
        limitStatus: 429,
      });
    else if (index === 0 || (!isLast && random.chance(1 / WEATHER_STEPS)))
      deeds.push({
        kind: "weather",
        settings: ofAll(weatherOf),
        limitStatus: random.pick([403, 429] as const),
      });
    if (happens("redeliver")) deeds.push({ kind: "redeliver", count: random.int(1, 20) });
    if (happens("quota")) deeds.push({ kind: "quota", remaining: random.int(0, 60) });
    if (happens("rotate")) deeds.push({ kind: "rotate" });
    if (happens("revoke", later))
      deeds.push({ kind: "revoke", index: later.int(0, TOKENS - 1), awaySteps: later.int(1, 40) });
    if (happens("kill")) deeds.push(killOf(random, workers));
    if (happens("flush")) deeds.push({ kind: "flush" });
    if (happens("redis")) deeds.push({ kind: "redis", awayMs: random.int(0, 1_500) });
    if (isAlone && isLast && twos.chance(TWICE)) deeds.push({ kind: "twice" });
    if (happens("parts", switches))
      deeds.push({ kind: "parts", index: switches.int(0, 100), awaySteps: switches.int(5, 60) });
    if (happens("jump", jumps))
      deeds.push({ kind: "jump", aheadMs: jumps.int(2, 90) * MINUTE_MS, awaySteps: jumps.int(5, 40) });
    if (happens("archive", odds)) deeds.push({ kind: "archive", index: odds.int(0, 100), awaySteps: odds.int(5, 60) });
    if (happens("reuse", odds)) deeds.push({ kind: "reuse" });
    if (happens("odd", odds)) {
      const odd = { kind: "odd", oddity: odds.pick(ODDITY_NAMES), index: odds.int(0, 100) } as const;
      // No webhook tells of a time that lies ahead, so only a read shows it.
      if (!(isAlone && odd.oddity === "future")) deeds.push(odd);
    }
    if (happens("postgres")) deeds.push({ kind: "postgres", awayMs: random.int(0, 1_500) });
    const isCloser = isLast && random.chance(0.8);
    // This minute takes the watermarks past everything that happened before. So no catch-up will read it again.
    const advanceMs = index === steps - LAST_WORDS ? MINUTE_MS : isCloser ? 0 : advanceOf(random);
    planned.push({ advanceMs, deeds, pauseMs: random.chance(0.7) ? 0 : random.int(1, 60) });
  }
  const skewsMs = skewsOf(moods, faults, workers);
  const auditLagMs = odds.chance(0.5) && faults.has("audits") ? odds.int(2_000, MAX_LAG_MS) : 0;
  return {
    seed,
    workers,
    isAlone,
    auditPeriodMs: isAlone ? DAY_MS : auditPeriodMs,
    auditLagMs,
    skewsMs,
    bumps: bumpsOf(limits, faults),
    steps: planned,
    meetings: isAlone ? aloneMeetings(twos, faults) : seed % 3 === 0 ? meetingsOf(twos, faults) : [],
  };
}

/** No meeting wipes out what another has left. Only the last one, the end of all workers, leaves anything. */
function meetingsOf(random: Random, faults: ReadonlySet<FaultKind>): Meeting[] {
  const lagMs = () => (faults.has("lag") ? random.int(1_000, MAX_LAG_MS) : 0);
  if (!faults.has("drop")) return [];
  const moments = faults.has("lag") ? [{ kind: "moments" as const, lagMs: lagMs() }] : [];
  const ends = faults.has("kill") ? [{ kind: "ends" as const, lagMs: 0 }] : [];
  return [{ kind: "pages", lagMs: 0 }, ...moments, ...ends];
}

/** The meetings of workers come first, because they change every issue. */
function aloneMeetings(random: Random, faults: ReadonlySet<FaultKind>): Meeting[] {
  const lagOf = (min: number, max: number) => (faults.has("lag") ? random.int(min, max) : 0);
  const workers = Array.from({ length: MEETINGS }, () => ({ kind: "workers" as const, lagMs: lagOf(500, MAX_LAG_MS) }));
  // A small lag shows one of two changes of a second. A larger one shows what was deleted.
  const reads = Array.from({ length: MEETINGS }, (_, index) => ({
    kind: "reads" as const,
    lagMs: index % 2 === 0 ? lagOf(5_000, LONG_LAG_MS) : lagOf(500, SHORT_LAG_MS),
  }));
  return [...workers, ...reads];
}

/** Most changes happen within the second of the change before, and then `updated_at` cannot tell the two apart. */
function advanceOf(random: Random): number {
  const roll = random.next();
  if (roll < 0.6) return 0;
  if (roll < 0.9) return random.int(100, 2_000);
  return roll < 0.985 ? random.int(2_000, 15_000) : random.int(15_000, 90_000);
}

function killOf(random: Random, workers: number): Deed {
  const part = random.chance(0.7) ? "worker" : random.pick(["web", "scheduler"] as const);
  return {
    kind: "kill",
    part,
    index: part === "worker" ? random.int(0, workers - 1) : 0,
    awaySteps: random.int(0, 20),
  };
}

/** Most machines set their clocks over the network and differ by a fraction of a second. Some differ by more. */
function skewsOf(random: Random, faults: ReadonlySet<FaultKind>, workers: number): Record<string, number> {
  const names = ["web-0", "scheduler-0", ...Array.from({ length: workers }, (_, index) => `worker-${index}`)];
  const skews = names.map((name) => [name, random.int(-MAX_SKEW_MS, MAX_SKEW_MS)] as const);
  return faults.has("skew") ? Object.fromEntries(skews) : {};
}

/**
 * For some kinds of change it is not known whether they move `updated_at`. Half of the seeds take the reading that is
 * harder for a mirror.
 */
function bumpsOf(random: Random, faults: ReadonlySet<FaultKind>): Partial<UncertainBumps> {
  const names = ["lock", "pin", "commentEdit", "commentDelete", "labelDelete", "typeChange"] as const;
  const isOther = random.chance(0.5);
  const moved = names.map((name) => [name, random.chance(0.5)] as const);
  return isOther && faults.has("moods") ? Object.fromEntries(moved) : {};
}

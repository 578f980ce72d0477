/**
 * What happens in one simulation, step by step. The plan follows from the seed alone, so that it can be played again.
 * Pure.
 */
import type { FaultSettings, HttpFault, WebhookFaults } from "../../src/simulator/faults.ts";
import { type Random, seededRandom } from "../../src/simulator/random.ts";
import type { UncertainBumps } from "../../src/simulator/world.ts";

/** Every fault, with what it does. */
export const faultKinds = {
  drop: "webhooks are lost without a trace",
  fail: "webhooks do not arrive, and upstream's list says so",
  duplicate: "webhooks arrive twice",
  delay: "webhooks arrive late",
  reorder: "webhooks arrive after their successors",
  redeliver: "old webhooks are sent again",
  errors: "upstream answers 500, 502 or 503",
  refusals: "upstream answers 403 or 429, with and without Retry-After",
  truncate: "upstream's answers end in the middle",
  reset: "upstream ends connections without an answer",
  slow: "upstream answers late",
  timeout: "upstream does not answer in time",
  lag: "upstream's replicas show an older state",
  moods:
    "upstream counts in two windows, tags by another formula, limits GraphQL by work, refuses by permission, locks out, moves other times",
  quota: "another user of the token spends the quota",
  rotate: "a token is replaced, and the old one revoked",
  revoke: "a token is refused for a while, and then accepted again",
  skew: "the clocks of the processes differ by up to a second",
  kill: "a process ends by kill -9 and is started again",
  flush: "Redis forgets everything",
  redis: "Redis is away for a while",
  postgres: "Postgres is away for a while",
  alone: "in every third seed nothing is read on a schedule, and no webhook is lost: webhooks alone have to tell",
} as const;

export type FaultKind = keyof typeof faultKinds;
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
};
/** How often each of these happens at most in a simulation, because each costs seconds of real time. */
const AT_MOST = { redis: 1, postgres: 1, rotate: 1, kill: 6 };
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
const REFUSED = ["/issues$", "/pulls/[0-9]+$", "/labels$", "/issues/comments$", "^POST /graphql$", "/pulls/comments$"];
/** The number of meetings of each kind. */
const MEETINGS = 4;
const SHORT_LAG_MS = 2_000;
/**
 * With this lag and two clocks that are wrong, a read still comes soon after a deletion: sooner than the longest lag
 * that the mirror reckons with.
 */
const LONG_LAG_MS = 7_000;
/** Less than the longest lag of a replica that the mirror reckons with. */
const MAX_LAG_MS = 9_000;
const MAX_SKEW_MS = 900;

/**
 * These faults lose webhooks or have everything read anew. Schedules that Redis has forgotten, or that are set again,
 * run at once.
 */
const READ_AFTER: ReadonlySet<FaultKind> = new Set([
  ...(["drop", "fail", "kill", "redis", "postgres"] as const),
  ...(["flush", "rotate", "revoke"] as const),
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
  const auditPeriodMs = random.chance(0.25) ? MINUTE_MS : DAY_MS;
  const planned: Step[] = [];
  for (let index = 0; index < steps; index++) {
    const deeds: Deed[] = [];
    const isLast = index >= steps - steps * LAST_SHARE;
    if (isLast && planned.length === Math.ceil(steps - steps * LAST_SHARE))
      deeds.push({
        kind: "weather",
        settings: limited(limits, faults, moodOf(moods, faults, lastWeather(random, faults))),
        limitStatus: 429,
      });
    else if (index === 0 || (!isLast && random.chance(1 / WEATHER_STEPS)))
      deeds.push({
        kind: "weather",
        settings: limited(limits, faults, moodOf(moods, faults, weatherOf(random, faults))),
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
    if (happens("postgres")) deeds.push({ kind: "postgres", awayMs: random.int(0, 1_500) });
    const isCloser = isLast && random.chance(0.8);
    // This minute takes the watermarks past everything that happened before. So no catch-up will read it again.
    const advanceMs = index === steps - LAST_WORDS ? MINUTE_MS : isCloser ? 0 : advanceOf(random);
    planned.push({ advanceMs, deeds, pauseMs: random.chance(0.7) ? 0 : random.int(1, 60) });
  }
  const skewsMs = skewsOf(moods, faults, workers);
  return {
    seed,
    workers,
    isAlone,
    auditPeriodMs: isAlone ? DAY_MS : auditPeriodMs,
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

/** Many webhooks arrive long after later ones of the same second. This weather leaves most to be decided. */
function lastWeather(random: Random, faults: ReadonlySet<FaultKind>): FaultSettings {
  const chance = (kind: FaultKind, probability: number) => (faults.has(kind) ? probability : 0);
  return {
    http: [],
    webhooks: {
      fail: chance("fail", 0.3),
      delay: chance("delay", 0.3),
      reorder: chance("reorder", 0.2),
      duplicate: chance("duplicate", 0.2),
      delayMs: random.int(500, 2_000),
    },
    lagMs: faults.has("lag") ? random.int(0, MAX_LAG_MS) : 0,
    lagDrawn: true,
  };
}

/** Most machines set their clocks over the network and differ by a fraction of a second. Some differ by more. */
function skewsOf(random: Random, faults: ReadonlySet<FaultKind>, workers: number): Record<string, number> {
  const names = ["web-0", "scheduler-0", ...Array.from({ length: workers }, (_, index) => `worker-${index}`)];
  const skews = names.map((name) => [name, random.int(-MAX_SKEW_MS, MAX_SKEW_MS)] as const);
  return faults.has("skew") ? Object.fromEntries(skews) : {};
}

/** Keeps the settings within the bounds that the service has in any weather. */
function limited(random: Random, faults: ReadonlySet<FaultKind>, settings: FaultSettings): FaultSettings {
  const numberedRows = random.pick([1_000, 10_000]);
  const workPerMinute = random.chance(0.2) ? random.int(50, 2_000) : Number.POSITIVE_INFINITY;
  if (!faults.has("moods")) return settings;
  return { ...settings, numberedRows, graphql: { ...settings.graphql, workPerMinute } };
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

/** Several faults together, each at its own strength. In a third of all weathers nearly all is well. */
function weatherOf(random: Random, faults: ReadonlySet<FaultKind>): FaultSettings {
  const isCalm = random.chance(0.3);
  const strength = (kind: FaultKind, max: number) => {
    const drawn = random.chance(0.4) ? random.next() * max : 0;
    return isCalm || !faults.has(kind) ? 0 : drawn;
  };
  const webhooks: WebhookFaults = {
    drop: strength("drop", 0.5),
    fail: strength("fail", 0.15),
    duplicate: strength("duplicate", 0.5),
    delay: strength("delay", 0.5),
    reorder: strength("reorder", 0.5),
    // The receiver gets the webhook, but upstream takes it for failed.
    timeout: strength("fail", 0.2),
    delayMs: random.int(50, 600),
  };
  const http: HttpFault[] = [];
  const status = random.pick([500, 502, 503] as const);
  const add = (probability: number, fault: HttpFault) => {
    if (probability > 0) http.push({ ...fault, probability });
  };
  add(strength("errors", 0.2), { kind: "status", status });
  add(strength("refusals", 0.05), { kind: "secondary-limit", retryAfter: random.int(1, 20) });
  add(strength("refusals", 0.05), { kind: "status", status: 429, retryAfter: random.int(1, 5) });
  add(strength("refusals", 0.02), { kind: "secondary-limit" });
  add(strength("truncate", 0.15), { kind: "truncate" });
  add(strength("reset", 0.15), { kind: "reset" });
  add(strength("slow", 0.2), { kind: "slow", delayMs: random.int(20, 800) });
  if (strength("timeout", 1) > 0.9) http.push({ kind: "slow", delayMs: 16_000, times: 1 });
  const lagMs = Math.round(strength("lag", MAX_LAG_MS));
  return { http, webhooks, lagMs, lagDrawn: true };
}

/** Faults that the service was seen to have in fair weather too. Each lasts as long as the weather it comes with. */
function moodOf(random: Random, faults: ReadonlySet<FaultKind>, settings: FaultSettings): FaultSettings {
  if (!faults.has("moods")) return settings;
  const is = (probability: number) => random.chance(probability);
  const http = [...(settings.http ?? [])];
  // Upstream refuses one list, or one kind of document, and shows everything else.
  if (is(0.15)) {
    const as = random.pick(["permission", "saml", "ip-allow-list"] as const);
    http.push({ kind: "refusal", as, match: random.pick(REFUSED), times: random.int(1, 12) });
  }
  if (is(0.2)) http.push({ kind: "status", status: random.pick([500, 502] as const), fromPage: 2, probability: 0.3 });
  const nested = { parents: random.int(2, 20), keep: random.int(0, 5) };
  return {
    ...settings,
    http,
    webhooks: { ...settings.webhooks, throttle: is(0.3) ? random.next() * 0.2 : 0 },
    windows: is(0.5),
    tags: is(0.3),
    lockOut: { attempts: random.int(5, 30), seconds: random.int(10, 120) },
    graphql: {
      ...(is(0.25) ? { timeoutAtWork: random.int(20, 400) } : {}),
      ...(is(0.25) ? { resourceLimitAtWork: random.int(20, 400) } : {}),
      ...(is(0.1) ? { truncateNested: nested } : {}),
    },
  };
}

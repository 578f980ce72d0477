import type { UnfitStoreError } from "../../../db/unfit.ts";
import { rootReasonOf, wholeReasonOf } from "../../failure.ts";
import { listOf } from "../terminal/command.ts";

/** All problems that can be found, each with the part that it concerns. docs/operations.md explains each of them. */
export const CHECKS = {
  "postgres-away": "postgres",
  "postgres-version": "postgres",
  "postgres-standby": "postgres",
  "postgres-full": "postgres",
  "postgres-read-only": "postgres",
  "postgres-durability": "postgres",
  "postgres-connections": "postgres",
  "schema-missing": "postgres",
  "schema-newer": "postgres",
  "schema-older": "postgres",
  replica: "postgres",
  "redis-away": "redis",
  "redis-version": "redis",
  "redis-policy": "redis",
  "redis-memory": "redis",
  "redis-full": "redis",
  "redis-disk": "redis",
  clock: "clock",
  "upstream-away": "upstream",
  "upstream-fails": "upstream",
  "token-rejected": "upstream",
  "token-limited": "upstream",
  "token-quota": "upstream",
  "token-scope": "upstream",
  "token-sight": "repositories",
  "app-key": "upstream",
  "app-nowhere": "upstream",
  "app-suspended": "upstream",
  "app-permission": "upstream",
  "repository-paused": "repositories",
  "repository-fails": "repositories",
  "repository-late": "repositories",
  "repository-wish": "repositories",
  drift: "repositories",
  "delivery-failed": "deliveries",
  "delivery-waits": "deliveries",
  "webhook-refused": "hooks",
  hook: "hooks",
  "hook-address": "hooks",
  target: "targets",
  "key-missing": "keys",
  "key-older": "keys",
  "key-shared": "keys",
  origin: "settings",
  proxy: "settings",
  "plain-text": "settings",
  "job-failed": "queues",
  worker: "processes",
  scheduler: "processes",
  web: "processes",
  silent: "processes",
  "public-url": "processes",
} as const satisfies Record<string, string>;

export type Check = keyof typeof CHECKS;
type Part = (typeof CHECKS)[Check];

/** The result of one check. */
export interface Finding {
  part: Part;
  level: "ok" | "warning" | "problem";
  /** Null where all is well. */
  check: Check | null;
  says: string;
  /** What to do about the problem. Null: all is well. */
  todo: string | null;
}

export function okFinding(part: Part, says: string): Finding {
  return { part, level: "ok", check: null, says, todo: null };
}

export function warning(check: Check, says: string, todo: string): Finding {
  return { part: CHECKS[check], level: "warning", check, says, todo };
}

export function problem(check: Check, says: string, todo: string): Finding {
  return { part: CHECKS[check], level: "problem", check, says, todo };
}

/**
 * The finding that upstream does not answer, with the root cause and what to do. @param otherwise what to do if the
 * cause is not a bad certificate
 */
export function upstreamAway(says: string, error: unknown, otherwise: string): Finding {
  const isCertificate = /\bcertificate/i.test(rootReasonOf(error));
  const todo = isCertificate ? "Mend it, or name its authority's certificate in NODE_EXTRA_CA_CERTS" : otherwise;
  return problem("upstream-away", `${says}: ${wholeReasonOf(error)}`, todo);
}

/** A store that must not be used. */
export function unfit(check: Check, { fault, remedy }: UnfitStoreError): Finding {
  return problem(check, fault, remedy.slice(0, 1).toUpperCase() + remedy.slice(1));
}

/** Collects the findings about one part. */
export class Findings {
  readonly all: Finding[] = [];
  readonly #part: Part;

  constructor(part: Part) {
    this.#part = part;
  }

  ok(says: string): void {
    this.all.push(okFinding(this.#part, says));
  }

  warning(check: Check, says: string, todo: string): void {
    this.all.push(warning(check, says, todo));
  }

  problem(check: Check, says: string, todo: string): void {
    this.all.push(problem(check, says, todo));
  }
}

/** How many names one sentence lists. */
const NAMES_LISTED = 5;

/** The first few names, and how many more there are. Pure. */
export function firstNames(names: readonly string[]): string {
  const more = names.length - NAMES_LISTED;
  return more > 0 ? `${names.slice(0, NAMES_LISTED).join(", ")} and ${more} more` : listOf(names);
}

// The merge compares times by our clocks. With a few seconds of difference, it may take an old read for a newer one.
const CLOCK_WARNING_MS = 2_000;
const CLOCK_PROBLEM_MS = 30_000;

/** Pure. @param aheadMs how far the other clock is ahead of ours @param precisionMs how exactly that is known */
export function clockFinding(whose: string, aheadMs: number, precisionMs = 100): Finding {
  const difference = Math.abs(aheadMs);
  const seconds = (difference / 1_000).toFixed(1);
  if (difference <= CLOCK_WARNING_MS + precisionMs)
    return okFinding("clock", `${whose} has the same time as this machine`);
  const says = `The clock of ${whose} is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  const todo = "Synchronise the clocks (NTP): of two observations the newer wins, and clocks say which that is";
  return difference > CLOCK_PROBLEM_MS ? problem("clock", says, todo) : warning("clock", says, todo);
}

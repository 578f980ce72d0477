import type { UnfitStoreError } from "../../../db/unfit.ts";
import { listOf } from "../command.ts";

/** What was looked at and how it is. */
export interface Finding {
  part:
    | "postgres"
    | "redis"
    | "upstream"
    | "clock"
    | "repositories"
    | "deliveries"
    | "hooks"
    | "targets"
    | "settings"
    | "queues"
    | "processes";
  level: "ok" | "warning" | "problem";
  says: string;
  /** What to do about it; null where all is well. */
  todo: string | null;
}

export function ok(part: Finding["part"], says: string): Finding {
  return { part, level: "ok", says, todo: null };
}

export function warning(part: Finding["part"], says: string, todo: string): Finding {
  return { part, level: "warning", says, todo };
}

export function problem(part: Finding["part"], says: string, todo: string): Finding {
  return { part, level: "problem", says, todo };
}

/** A store that must not be used. */
export function unfit(part: "postgres" | "redis", { fault, remedy }: UnfitStoreError): Finding {
  return problem(part, fault, remedy.slice(0, 1).toUpperCase() + remedy.slice(1));
}

/** Collects the findings about one part. */
export class Findings {
  readonly all: Finding[] = [];
  readonly #part: Finding["part"];

  constructor(part: Finding["part"]) {
    this.#part = part;
  }

  ok(says: string): void {
    this.all.push(ok(this.#part, says));
  }

  warning(says: string, todo: string): void {
    this.all.push(warning(this.#part, says, todo));
  }

  problem(says: string, todo: string): void {
    this.all.push(problem(this.#part, says, todo));
  }
}

/** Names in one sentence. */
const NAMED = 5;

/** The first few names, and how many more there are. Pure. */
export function named(names: readonly string[]): string {
  const more = names.length - NAMED;
  return more > 0 ? `${names.slice(0, NAMED).join(", ")} and ${more} more` : listOf(names);
}

// The merge compares when things were seen, by our clocks: a few seconds of difference may take an old read for a new one.
const CLOCK_WARNING_MS = 2_000;
const CLOCK_PROBLEM_MS = 30_000;

/** Pure. @param aheadMs how far the other clock is ahead of ours @param precisionMs how exactly that is known */
export function clockFinding(whose: string, aheadMs: number, precisionMs = 100): Finding {
  const difference = Math.abs(aheadMs);
  const seconds = (difference / 1_000).toFixed(1);
  if (difference <= CLOCK_WARNING_MS + precisionMs) return ok("clock", `${whose} has the same time as this machine`);
  const says = `The clock of ${whose} is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  const todo = "Synchronise the clocks (NTP): of two observations the newer wins, and clocks say which that is";
  return difference > CLOCK_PROBLEM_MS ? problem("clock", says, todo) : warning("clock", says, todo);
}

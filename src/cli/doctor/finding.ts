import { listOf } from "../command.ts";

/** What was looked at and how it is. */
export interface Finding {
  part: "postgres" | "redis" | "upstream" | "clock" | "repositories" | "deliveries" | "hooks" | "processes";
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

/** One line of JSON that a run has printed. */
export type Line = Readonly<Record<string, unknown>>;

export type Bound = { atMost: number } | { atLeast: number };

/** Something that was measured, and what was promised of it. */
export interface Figure {
  what: string;
  /** The case that was measured, where a proof has several, such as `1,000 repositories`. */
  of?: string;
  /** Null: the run did not print this figure. */
  measured: number | null;
  /**
   * Null: nothing was promised of this figure. Readers are shown it because the bounds alone do not tell everything.
   */
  bound: Bound | null;
}

/** Arguments of scripts/run.mjs, and the environment that makes the run long. */
export interface Command {
  args: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/** A check that takes too long for every change. A change that touches its subject is done only once it has run. */
export interface Proof {
  name: string;
  /** What holds when all figures are within their bounds, as a sentence. */
  proves: string;
  /** Roughly how many minutes it takes on an idle machine of two cores. */
  minutes: number;
  /** The commands run one after another. An interrupted proof goes on at the first command that has not ended. */
  commands: readonly Command[];
  /** The figures in the lines of all commands. Pure. */
  figures: (lines: readonly Line[]) => Figure[];
}

export function isMet({ measured, bound }: Figure): boolean {
  if (measured === null) return false;
  if (bound === null) return true;
  return "atMost" in bound ? measured <= bound.atMost : measured >= bound.atLeast;
}

/** The lines of JSON in a program's output. Test runners print other lines between them. Pure. */
export function linesOf(output: string): Line[] {
  return output.split("\n").flatMap((text) => {
    if (!text.startsWith("{")) return [];
    try {
      const value: unknown = JSON.parse(text);
      return isObject(value) ? [value] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return []; // The line begins with a brace, but is no JSON.
      throw error;
    }
  });
}

/** The number that this path leads to through nested objects; null where there is none. Pure. */
export function numberAt(line: Line | undefined, ...way: string[]): number | null {
  let value: unknown = line;
  for (const name of way) value = isObject(value) ? value[name] : undefined;
  return typeof value === "number" ? value : null;
}

/** The largest number of a list in the line; null where there is none. Pure. */
export function largestOf(line: Line | undefined, name: string): number | null {
  const numbers = listOf(line, name).filter((value) => typeof value === "number");
  return numbers.length === 0 ? null : Math.max(...numbers);
}

export function listOf(line: Line | undefined, name: string): readonly unknown[] {
  const value = line?.[name];
  return Array.isArray(value) ? value : [];
}

function isObject(value: unknown): value is Line {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

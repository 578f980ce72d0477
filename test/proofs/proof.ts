/** One line of JSON that a run has printed. */
export type Line = Readonly<Record<string, unknown>>;

export type Bound = { atMost: number } | { atLeast: number };

/** Something measured, beside what was promised of it. */
export interface Figure {
  what: string;
  /** Null: the run did not print it. */
  measured: number | null;
  /** Null: nothing was promised of it. It is told, so that readers see what a bound does not say. */
  bound: Bound | null;
}

/** Arguments of scripts/run.mjs, and the environment that makes the run long. */
export interface Command {
  args: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/** What takes too long for every change, and has to be run before a change that touches it is called done. */
export interface Proof {
  name: string;
  /** What holds when its figures are within their bounds: a sentence. */
  proves: string;
  /** How long it takes on an idle machine of two cores, about. */
  minutes: number;
  /** Run one after another. An interrupted proof goes on at the first that has not ended. */
  commands: readonly Command[];
  /** What the lines of all commands say. Pure. */
  figures: (lines: readonly Line[]) => Figure[];
}

export function isMet({ measured, bound }: Figure): boolean {
  if (measured === null) return false;
  if (bound === null) return true;
  return "atMost" in bound ? measured <= bound.atMost : measured >= bound.atLeast;
}

/** The lines of JSON in what a program printed; test runners print others between them. Pure. */
export function linesOf(output: string): Line[] {
  return output.split("\n").flatMap((text) => {
    if (!text.startsWith("{")) return [];
    try {
      const value: unknown = JSON.parse(text);
      return isObject(value) ? [value] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return []; // A brace of something else.
      throw error;
    }
  });
}

/** The number at the end of a way through nested objects; null where there is none. Pure. */
export function numberAt(line: Line | undefined, ...way: string[]): number | null {
  let value: unknown = line;
  for (const name of way) value = isObject(value) ? value[name] : undefined;
  return typeof value === "number" ? value : null;
}

/** The largest of a list of numbers in the line; null where there is none. Pure. */
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

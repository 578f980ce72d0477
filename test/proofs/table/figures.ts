/** How proofs make figures of what their commands print. */
import { type Bound, type Figure, type Line, listOf, numberAt } from "../proof.ts";

export const atMost = (what: string, measured: number | null, most: number): Figure => ({
  what,
  measured,
  bound: { atMost: most },
});

export const atLeast = (what: string, measured: number | null, least: number): Figure => ({
  what,
  measured,
  bound: { atLeast: least },
});

/** A figure without a bound: nothing was promised. */
export const told = (what: string, measured: number | null): Figure => ({ what, measured, bound: null });

/** These figures of one case out of several. */
export const inCase = (of: string, figures: readonly Figure[]): Figure[] =>
  figures.map((figure) => ({ of, ...figure }));

/** The lines that tests have printed with `printFigures` under this name. */
export const printed = (lines: readonly Line[], of: string) => lines.filter((line) => line.figures === of);

/** Null if there is no line: a sum over nothing proves nothing. */
export function sumOf(lines: readonly Line[], count: (line: Line) => number): number | null {
  return lines.length === 0 ? null : lines.reduce((sum, line) => sum + count(line), 0);
}

export function shareOf(line: Line | undefined, part: string, whole: string): number | null {
  const [some, all] = [numberAt(line, part), numberAt(line, whole)];
  return some === null || all === null || all === 0 ? null : some / all;
}

/** The figures in what the simulation says of its seeds. */
export function outcomesOf(lines: readonly Line[], seeds: number): Figure[] {
  const outcomes = lines.filter((line) => numberAt(line, "drift") !== null);
  return [
    atLeast("seeds played", outcomes.length, seeds),
    atMost(
      "fields that differ after an audit",
      sumOf(outcomes, (line) => numberAt(line, "drift") ?? 0),
      0,
    ),
    atMost(
      "fields that differ before it",
      sumOf(outcomes, (line) => numberAt(line, "missed") ?? 0),
      0,
    ),
    atMost(
      "processes that ended by themselves",
      sumOf(outcomes, (line) => listOf(line, "crashes").length),
      0,
    ),
    atMost(
      "seeds that did not end",
      sumOf(outcomes, (line) => (line.hang === null ? 0 : 1)),
      0,
    ),
  ];
}

/** A figure for each line of a benchmark. */
export function ratiosOf(lines: readonly Line[], ratio = "ratio"): Figure[] {
  return lines.flatMap((line) => {
    const bound = boundOf(line.goal);
    return bound ? [{ what: String(line.name), measured: numberAt(line, ratio), bound }] : [];
  });
}

/** The bound in a goal such as `≥ 0.80` or `≤ 2.00`, as benchmarks print it. */
function boundOf(goal: unknown): Bound | null {
  const [, sign, number] = /^([≤≥]) ([\d.]+)$/.exec(String(goal)) ?? [];
  if (number === undefined) return null;
  return sign === "≤" ? { atMost: Number(number) } : { atLeast: Number(number) };
}

export const LARGE = { TAIN_LARGE: "1" };

/** The run prints how many tests passed and failed. */
export const COUNTED = { TAIN_COUNTS: "1" };

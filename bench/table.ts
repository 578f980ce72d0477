import { readFile, writeFile } from "node:fs/promises";
import { cpus, platform, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Outcome } from "./instead.ts";
import { median } from "./measure.ts";

/** A line of `npm run bench -- --json`, as far as the tables show it. */
export interface Line {
  name: string;
  unit: string;
  subject: number;
  ratio: number;
  spread: [number, number];
  goal: string;
  /** The same ratio by the CPU time of the two server processes, where a benchmark compares two. */
  cpuRatio?: number;
}

/** What `mixed` prints, as far as the tables show it. */
export interface MixedLine {
  name: "mixed";
  seconds: number;
  settings: Record<string, number>;
  deliveries: Record<string, number>;
  copies: Record<string, number>;
  reads: { perSecond: number; statuses: Record<string, number>; latencyMs: Record<string, Spread> };
  freshnessMs: { shown: Spread; settled: Spread };
  waiting: Record<string, Course>;
  residentMiB: Record<string, Course>;
  problems: string[];
}

/** What `instead` prints: of each scenario the figures of each server, medians of its runs. */
export interface InsteadLine {
  name: "instead";
  problems: string[];
  [scenario: string]: Record<string, InsteadFigures> | string[] | "instead";
}

type InsteadFigures = Pick<
  Outcome,
  | "charged"
  | "points"
  | "asked"
  | "refused"
  | "p50"
  | "p99"
  | "behind"
  | "behindMs"
  | "askedCutOff"
  | "answeredCutOff"
  | "memoryMiB"
  | "cpuSeconds"
>;

interface Spread {
  median: number | null;
  p99: number | null;
}

interface Course {
  first: number;
  last: number;
  most: number;
}

type AnyLine = Line | MixedLine | InsteadLine;

/** What a file of `--json` output says: one JSON document a line. @throws SyntaxError for a line that is none */
export function linesOf(text: string): AnyLine[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as AnyLine);
}

/**
 * A row for each benchmark, over as many runs as there are: medians, the ratio of each run, and the lowest and highest
 * round of all. Pure.
 */
export function benchmarkTable(runs: readonly (readonly Line[])[]): string {
  const names = [...new Set(runs.flatMap((run) => run.map(({ name }) => name)))];
  const rows = names.map((name) => {
    const lines = runs.flatMap((run) => run.filter((line) => line.name === name));
    // A goal that was raised since holds for the runs before, too.
    const { unit, goal } = lines.at(-1) as Line;
    const figure = (of: (line: Line) => number) => shown(median(lines.map(of)));
    const lowest = Math.min(...lines.map(({ spread }) => spread[0]));
    const highest = Math.max(...lines.map(({ spread }) => spread[1]));
    const byCpu = lines.flatMap(({ cpuRatio }) => (cpuRatio === undefined ? [] : [cpuRatio]));
    const met = lines.filter(({ ratio }) => meets(ratio, goal)).length;
    const missed = met === lines.length ? "" : met === 0 ? ", **missed**" : `, **met by ${met} of ${lines.length}**`;
    return [
      `\`${name}\``,
      `${figure(({ subject }) => subject)} ${unit}`,
      `${lines.map(({ ratio }) => shown(ratio)).join(", ")} (${shown(lowest)}–${shown(highest)})`,
      byCpu.length === 0 ? "" : shown(median(byCpu)),
      `${goal}${missed}`,
    ];
  });
  return table(["name", "subject", "ratio of each run (rounds)", "by CPU time", "goal"], rows);
}

/** `goal` as the benchmarks print it: `≥ 0.80` or `≤ 2.00`. */
function meets(ratio: number, goal: string): boolean {
  const bound = Number(goal.slice(2));
  return goal.startsWith("≥") ? ratio >= bound : ratio <= bound;
}

/** What came of a mixed load: of what waits and of memory the first, the last and the highest figure. Pure. */
export function mixedTable(line: MixedLine): string {
  const { deliveries, copies, reads, freshnessMs, waiting, residentMiB, settings } = line;
  const times = ({ median: middle, p99 }: Spread) => `${shown(middle)} ms, p99 ${shown(p99)} ms`;
  const course = ({ first, last, most }: Course) => `${shown(first)} → ${shown(last)}, at most ${shown(most)}`;
  const counts = (of: Record<string, number>) =>
    Object.entries(of)
      .map(([name, count]) => `${name} ${count.toLocaleString("en")}`)
      .join(", ");
  return table(
    ["of the mixed load", ""],
    [
      ["seconds", shown(line.seconds)],
      ["settings", counts(settings)],
      ["deliveries", counts(deliveries)],
      ["copies of repositories", counts(copies)],
      ["from a change to an answer that shows it, median", times(freshnessMs.shown)],
      ["from receipt to applied, median", times(freshnessMs.settled)],
      ["reads", `${shown(reads.perSecond)}/s: ${counts(reads.statuses)}`],
      [
        "reads, median",
        Object.entries(reads.latencyMs)
          .map(([kind, spread]) => `${kind} ${times(spread)}`)
          .join("; "),
      ],
      // What stayed empty says nothing, and a queue no more than what waits in Postgres.
      ...Object.entries(waiting).flatMap(([name, one]) =>
        one.most === 0 || name.startsWith("queue ") ? [] : [[name, course(one)]],
      ),
      ...Object.entries(residentMiB).map(([name, one]) => [`MiB of ${name}`, course(one)]),
      ["problems", line.problems.length === 0 ? "none" : line.problems.join("; ").replaceAll("|", "\\|")],
    ],
  );
}

/** What clients got from each server, in these scenarios or in all. Pure. */
export function insteadTable(lines: readonly InsteadLine[], only?: readonly string[]): string {
  const scenarios = lines.flatMap(({ name: _, problems: __, ...rest }) => Object.entries(rest));
  const shownOnes = scenarios.filter(([scenario]) => only === undefined || only.includes(scenario));
  return table(
    ["", "charged to quota", "median, p99", "refused", "behind upstream", "answered without upstream", "memory, CPU"],
    shownOnes.flatMap(([scenario, servers]) =>
      Object.entries(servers as Record<string, InsteadFigures>).map(([server, of]) => [
        `${scenario}: ${server}`,
        of.points > 0 ? `${shown(of.charged)} + ${shown(of.points)} points` : shown(of.charged),
        `${shown(of.p50)}, ${shown(of.p99)} ms`,
        `${shown(of.refused)} of ${shown(of.asked)}`,
        of.behind > 0 ? `${shown(of.behind)}, by at most ${shown(of.behindMs)} ms` : "0",
        `${shown(of.answeredCutOff)} of ${shown(of.askedCutOff)}`,
        server === "upstream" ? "" : `${shown(of.memoryMiB)} MiB, ${shown(of.cpuSeconds)} s`,
      ]),
    ),
  );
}

/**
 * The page with this between `<!-- name -->` and `<!-- /name -->`. Pure. @throws Error for a page without those marks
 */
export function withPart(page: string, name: string, part: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`The page has no place for this: ${begin} … ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${part}\n\n${page.slice(to)}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Three figures are more than any run repeats. */
function shown(figure: number | null): string {
  if (figure === null || !Number.isFinite(figure)) return "–";
  return (Math.abs(figure) >= 100 ? Math.round(figure) : Number(figure.toPrecision(3))).toLocaleString("en");
}

function machine(): string {
  const [first] = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB of memory`;
  return `${cpus().length} × ${first?.model.trim()}, ${memory}, ${platform()}, Node ${process.versions.node}; Postgres, Redis, what is measured and who asks share it.`;
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true });
  if (positionals.length === 0) {
    process.stderr.write("Usage: node bench/table.ts FILE…   one file for each run of npm run bench -- --json\n");
    process.exit(2);
  }
  const write = async (path: string, parts: Readonly<Record<string, string | null>>) => {
    const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
    let page = await readFile(file, "utf8");
    for (const [name, part] of Object.entries(parts)) if (part !== null) page = withPart(page, name, part);
    await writeFile(file, page);
  };
  const runs = await Promise.all(positionals.map(async (path) => linesOf(await readFile(path, "utf8"))));
  const benchmarks = runs
    .map((run) => run.filter((line): line is Line => "ratio" in line))
    .filter((run) => run.length > 0);
  const mixed = runs.flat().findLast((line): line is MixedLine => line.name === "mixed");
  const instead = runs.flat().filter((line): line is InsteadLine => line.name === "instead");
  await write("docs/performance.md", {
    benchmarks: benchmarks.length > 0 ? `${machine()}\n\n${benchmarkTable(benchmarks)}` : null,
    mixed: mixed ? mixedTable(mixed) : null,
  });
  await write("README.md", {
    instead: instead.length > 0 ? insteadTable(instead, ["20 clients", "200 clients"]) : null,
  });
  await write("bench/NOTES.md", { instead: instead.length > 0 ? insteadTable(instead) : null });
}

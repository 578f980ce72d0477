import { expect, test } from "vitest";
import { names } from "../../bench/names.ts";
import {
  benchmarkTable,
  type InsteadLine,
  insteadTable,
  type Line,
  linesOf,
  type MixedLine,
  mixedTable,
  withPart,
} from "../../bench/table.ts";
import { readPage } from "../docs/markdown.ts";

const line: Line = {
  name: "list",
  unit: "answers/s",
  subject: 1_234.5,
  ratio: 0.9,
  spread: [0.85, 0.95],
  goal: "≥ 0.80",
};

test("a benchmark's row has medians over the runs, each run's ratio, the extremes of all rounds, and how many runs met the goal", () => {
  const rows = benchmarkTable([
    [{ ...line, cpuRatio: 1.1 }],
    [{ ...line, subject: 900, ratio: 0.7, spread: [0.65, 0.75], cpuRatio: 0.9 }],
    [{ ...line, subject: 1_300, ratio: 1, spread: [0.99, 1.04], cpuRatio: 1 }],
  ]).split("\n");
  expect(rows.slice(2)).toEqual([
    "| `list` | 1,235 answers/s | 0.9, 0.7, 1 (0.65–1.04) | 1 | ≥ 0.80, **met by 2 of 3** |",
  ]);
});

test("a benchmark that only one of the runs has is shown with that run alone", () => {
  const rows = benchmarkTable([[line], [line, { ...line, name: "disk", goal: "≤ 0.80" }]]).split("\n");
  expect(rows.length).toBe(4);
  expect(rows[3]).toBe("| `disk` | 1,235 answers/s | 0.9 (0.85–0.95) |  | ≤ 0.80, **missed** |");
});

test("a goal that was raised between two runs is asked of both", () => {
  const [, , row] = benchmarkTable([[line], [{ ...line, ratio: 1.5, goal: "≥ 1.50" }]]).split("\n");
  expect(row).toContain("| ≥ 1.50, **met by 1 of 2** |");
});

test("what else a run prints is no line of it, and a line that was cut off is refused", () => {
  const text = `tain: Redis on 127.0.0.1:1\n${JSON.stringify(line)}\n\n`;
  expect(linesOf(text)).toEqual([line]);
  expect(() => linesOf(text.slice(0, -10))).toThrow(SyntaxError);
});

const course = { first: 1, last: 2, most: 3 };
const spread = { median: 1, p99: 2 };
const mixed: MixedLine = {
  name: "mixed",
  seconds: 600,
  settings: { readers: 32 },
  deliveries: { live: 100, lost: 0 },
  copies: { first: 2, again: 0 },
  reads: { perSecond: 640, statuses: { "200": 3, "304": 1_000 }, latencyMs: { all: spread } },
  freshnessMs: { shown: { median: null, p99: null }, settled: spread },
  waiting: { marks: course, "queue audit": { first: 0, last: 0, most: 0 } },
  residentMiB: { web: course },
  problems: [],
};

test("a mixed load's table tells of each figure, also of one that nothing was measured for, and of what went wrong", () => {
  const text = mixedTable(mixed);
  expect(text).toContain("| marks | 1 → 2, at most 3 |");
  expect(text).toContain("| MiB of web | 1 → 2, at most 3 |");
  expect(text).toContain("| from a change to an answer that shows it, median | – ms, p99 – ms |");
  expect(text).toContain("| reads, median | all 1 ms, p99 2 ms |");
  expect(text).toContain("| reads | 640/s: 200 3, 304 1,000 |");
  expect(text).not.toContain("queue audit");
  expect(text).toContain("| problems | none |");
  expect(mixedTable({ ...mixed, problems: ["2 × lost", "a | b"] })).toContain("| problems | 2 × lost; a \\| b |");
});

test("what clients got from each server is a row, without the memory of what is not ours", () => {
  const outcome = {
    ...{ charged: 8, points: 2, asked: 240, refused: 0, p50: 8.512, p99: 60, behind: 0, behindMs: 0 },
    ...{ askedCutOff: 60, answeredCutOff: 60, behindAfter: 0, behindAfterMs: 0, memoryMiB: 310, cpuSeconds: 4.2 },
  };
  const upstream = { ...outcome, points: 0, behind: 3, behindMs: 1_500 };
  const line: InsteadLine = {
    name: "instead",
    problems: [],
    some: { tain: outcome, upstream },
    others: { tain: outcome },
  };
  const text = insteadTable([line], ["some"]);
  expect(text).toContain("| some: tain | 8 + 2 points | 8.51, 60 ms | 0 of 240 | 0 | 60 of 60 | 310 MiB, 4.2 s |");
  expect(text).toContain("| some: upstream | 8 | 8.51, 60 ms | 0 of 240 | 3, by at most 1,500 ms | 60 of 60 |  |");
  expect(text).not.toContain("others");
  expect(insteadTable([line])).toContain("others: tain");
});

test("a table takes the place of the one before and leaves the rest of the page alone", () => {
  const page = "# P\n\n<!-- a -->\n\nold\n\n<!-- /a -->\n\nrest\n";
  expect(withPart(page, "a", "new")).toBe("# P\n\n<!-- a -->\n\nnew\n\n<!-- /a -->\n\nrest\n");
  expect(() => withPart(page, "b", "new")).toThrow("no place");
});

test("the page about performance has a place for both tables, and says of each benchmark what bounds it", () => {
  const page = readPage("docs/performance.md");
  expect(withPart(withPart(page, "benchmarks", "x"), "mixed", "y")).not.toBe(page);
  const [, bounds = ""] = /^## What bounds each$([\s\S]*?)^## /m.exec(page) ?? [];
  const described = [...bounds.matchAll(/^- `([\w-]+)`/gm)].map(([, name]) => name);
  expect(described).toEqual(names);
});

import { expect, test } from "vitest";
import { REPLICA_LAG_MS } from "../../src/mirror/store/merge-rule.ts";
import { QUEUE_KEYS, QUEUE_NAMES } from "../../src/queues/queues.ts";
import type { Backoff, Limits } from "../../src/waits/backoff.ts";
import { JOB_ATTEMPTS, RETRIES } from "../../src/waits/retries.ts";
import { readPage } from "./markdown.ts";

/** The rows of the page's table whose head begins so. */
const rowsOf = (page: string, head: string) =>
  readPage(page)
    .split("\n\n")
    .filter((block) => block.startsWith(`| ${head} |`))
    .flatMap((table) => table.split("\n").slice(2))
    .map((row) => row.replaceAll(/^\| | \|$|`/g, "").split(" | "));

const policies: [name: string, policy: Backoff & Limits & { until?: string }][] = Object.entries(RETRIES);
const UNITS: [name: string, ms: number][] = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

function timeOf(ms: number): string {
  const [name, size] = UNITS.find(([, least]) => ms >= least) ?? ["ms", 1];
  return `${ms / size} ${name}`;
}

function boundOf({ attempts, withinMs, patienceMs, until }: Limits & { until?: string }): string {
  const ms = withinMs ?? patienceMs;
  return until ?? (attempts === undefined ? timeOf(ms ?? 0) : `${attempts} attempts`);
}

test("what is tried again after minutes is on the page, as the code does it", () => {
  const rows = rowsOf("docs/operations.md", "what | first wait | longest | until | name");
  const told = rows.map(([, first, longest, until, name]) => [name, first, longest, until]);
  const names = new Set(told.map(([name]) => name));
  expect(names.size).toBe(told.length);
  const done = policies.map(([name, one]) => [name, timeOf(one.firstMs), timeOf(one.longestMs), boundOf(one)]);
  expect(told).toEqual(done.filter(([name = ""]) => names.has(name)));
  // Shorter waits are over before somebody looks. The page about following upstream has these four.
  const elsewhere = ["absent", "refused", "unavailable", "own"];
  const untold = policies.filter(([name]) => !names.has(name) && !elsewhere.includes(name));
  expect(untold.filter(([, { longestMs }]) => longestMs >= 5 * 60_000).map(([name]) => name)).toEqual([]);
});

test("the page says how often each queue's jobs are tried", () => {
  const told = rowsOf("docs/operations.md", "attempts of a job").flatMap(([attempts, queues = ""]) =>
    queues.split(", ").map((queue) => `${queue} ${attempts}`),
  );
  expect(told.sort()).toEqual(QUEUE_KEYS.map((key) => `${QUEUE_NAMES[key]} ${JOB_ATTEMPTS[key]}`).sort());
});

test("the page about following upstream has the same waits", () => {
  const told = rowsOf("docs/following.md", "upstream").map(([, first, longest]) => [first, longest]);
  const words = (ms: number) =>
    timeOf(ms)
      .replace(
        /^(\d+) (h|min|s)$/,
        (_, count, unit) => `${count} ${{ h: "hour", min: "minute", s: "second" }[unit as "h"]}s`,
      )
      .replace(/^(1 \w+)s$/, "$1");
  const { absent, refused, unavailable, own } = RETRIES;
  // Single resources that upstream refuses wait as absent things do.
  const done = [absent, refused, absent, unavailable, own];
  expect(told).toEqual(done.map(({ firstMs, longestMs }) => [words(firstMs), words(longestMs)]));
});

test("a write is awaited for as long as a replica of upstream's may lag", () => {
  expect(RETRIES.writeShown.withinMs).toBe(REPLICA_LAG_MS);
});

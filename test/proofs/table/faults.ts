import { plants } from "../../plants/plants.ts";
import { type Command, numberAt, type Proof } from "../proof.ts";
import { atLeast, atMost, COUNTED, inCase, outcomesOf, printed, sumOf, told } from "./figures.ts";

/** The tests that `npm test` leaves out run in so many parts, which take a few minutes each. */
const LONG_PARTS = 4;
/** A command plays this many seeds, in about 15 minutes. The state is saved after each command. */
const SEEDS_A_COMMAND = 10;
const PLANTS_A_COMMAND = 13;
/** Bugs in synchronizing and merging (`npm run plants`). */
const PLANTS_BY_SEEDS = [
  "goes-backwards",
  "no-conflict-rule",
  "conflicts-are-not-asked",
  "tombstones-rise",
  "replicas-are-believed",
  "unsent-is-none",
  "early-read-settles",
  "pages-by-number",
  "no-overlap",
  "validator-before-details",
  "two-workers-overwrite",
] as const;
/** The most seeds that are played to find one bug. */
const SEEDS_A_PLANT = 20;

/** Faults and bugs that are put in, and tests that take long. */
export const FAULT_PROOFS: readonly Proof[] = [
  {
    name: "long",
    proves: "The tests pass that `npm test` leaves out (`LONG` in test/tiers.ts).",
    minutes: 9,
    commands: Array.from({ length: LONG_PARTS }, (_, at) => ({
      args: ["test", "test", "--project", "long", `--shard=${at + 1}/${LONG_PARTS}`],
      env: COUNTED,
    })),
    figures: (lines) => {
      const runs = printed(lines, "tests");
      return [
        atLeast(
          "passed",
          sumOf(runs, (run) => numberAt(run, "passed") ?? 0),
          400,
        ),
        atMost(
          "failed",
          sumOf(runs, (run) => numberAt(run, "failed") ?? 1),
          0,
        ),
      ];
    },
  },
  {
    name: "seeds",
    proves:
      "Whatever goes wrong on the way, in 200 seeds of 500 changes, the mirror becomes equal to a quiet upstream.",
    minutes: 300,
    commands: seedCommands(200),
    figures: (lines) => outcomesOf(lines, 200),
  },
  {
    name: "plants",
    proves: "A test finds each small bug that is planted in a copy of the sources.",
    minutes: 40,
    commands: plantCommands(),
    figures: (lines) => {
      const tried = lines.filter((line) => plants.some(({ name }) => name === line.name));
      const found = tried.filter(({ foundBy }) => typeof foundBy === "string");
      return [
        atLeast("bugs that were found", found.length, plants.length),
        told("of them by one of their own tests", found.filter(({ isExpected }) => isExpected === true).length),
      ];
    },
  },
  {
    name: "plants-by-seeds",
    proves: "One of 20 seeds finds each small bug in following upstream; all are equal without it.",
    minutes: 60,
    commands: PLANTS_BY_SEEDS.map((plant) => ({
      args: ["simulate", "--seeds", `1..${SEEDS_A_PLANT}`, "--plant", plant, "--until-found", "--json"],
    })),
    figures: (lines) =>
      inCase(
        "seeds until it is found",
        PLANTS_BY_SEEDS.map((plant) => {
          const seeds = lines.filter((line) => line.plant === plant);
          const isFound = seeds.some((line) => "replay" in line);
          return atMost(plant, isFound ? seeds.length : null, SEEDS_A_PLANT);
        }),
      ),
  },
  {
    name: "removals",
    proves: "200 removals of each of three repositories, beside a copy, a catch-up and an audit, are never undone.",
    minutes: 20,
    commands: [{ args: ["test", "test/scenario/removal.test.ts"], env: { REMOVALS: "200" } }],
    figures: (lines) => {
      const [line] = printed(lines, "removals");
      return [
        atLeast("removals", numberAt(line, "removals"), 600),
        atLeast("removals while the job was under way", numberAt(line, "besideJobs"), 200),
      ];
    },
  },
  {
    name: "interleavings",
    proves: "The merge rule, the lists of labels and searches hold against their models, many thousand times.",
    minutes: 10,
    commands: [
      { args: ["test", "test/mirror/merge-rule.test.ts"], env: { SEEDS: "100" } },
      { args: ["test", "test/mirror/label-lists.test.ts"], env: { SEEDS: "200" } },
      { args: ["test", "test/api/search.test.ts"], env: { SEARCH_SEEDS: "3000" } },
      { args: ["test", "test/api/graphql-executors.test.ts"], env: { GRAPHQL_SEEDS: "3000" } },
    ],
    figures: () => [],
  },
];

/** The commands that plant bugs. Each plants only a few, so that an interruption costs minutes. */
function plantCommands(): Command[] {
  const names = plants.map(({ name }) => name);
  return Array.from({ length: Math.ceil(names.length / PLANTS_A_COMMAND) }, (_, at) => ({
    args: ["plants", "--json", ...names.slice(at * PLANTS_A_COMMAND, (at + 1) * PLANTS_A_COMMAND)],
  }));
}

function seedCommands(count: number): Command[] {
  return Array.from({ length: count / SEEDS_A_COMMAND }, (_, index) => {
    const first = index * SEEDS_A_COMMAND + 1;
    const range = `${first}..${first + SEEDS_A_COMMAND - 1}`;
    return { args: ["simulate", "--seeds", range, "--steps", "500", "--workers", "4", "--faults", "all", "--json"] };
  });
}

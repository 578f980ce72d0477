import { names as benchmarkNames } from "../../bench/names.ts";
import { plants } from "../plants/plants.ts";
import { type Bound, type Command, type Figure, type Line, largestOf, listOf, numberAt, type Proof } from "./proof.ts";

/** Versions of Postgres, each with a source of Redis. `npm test` itself runs on Postgres 18. */
const STORES = [
  ["15", "deb"],
  ["16", "valkey"],
  ["17", "deb"],
] as const;
/** The tests of what everything else rests on, and those of processes whose stores go away. */
const CORE = [
  ["test", "--project", "quick"],
  ["test/workers", "test/scenario/stores.test.ts", "test/cli/doctor.test.ts"],
];
/** Tain sends this command only to a Redis that says that it is version 7.2 or newer. */
const ASKED_WHERE_KNOWN = "waitaof";
const LARGE = { TAIN_LARGE: "1" };
/** The run prints how many tests passed and failed. */
const COUNTED = { TAIN_COUNTS: "1" };
/** The tests that `npm test` leaves out run in so many parts, which take a few minutes each. */
const LONG_PARTS = 4;
/** The state is saved after so many seeds, which take a quarter of an hour. */
const SEEDS_A_COMMAND = 10;
const SHORT_SEEDS_A_COMMAND = 5;
const CHANGES_A_COMMAND = 2_500;
const PLANTS_A_COMMAND = 13;
/** Bugs in synchronizing and merging (`npm run plants`), and how many seeds of the simulation may be played for each. */
const PLANTS_BY_SEEDS = [
  "goes-backwards",
  "no-tie-rule",
  "ties-are-not-asked",
  "tombstones-rise",
  "replicas-are-believed",
  "unsent-is-none",
  "early-read-settles",
  "pages-by-number",
  "no-overlap",
  "validator-before-details",
  "two-workers-overwrite",
] as const;
const SEEDS_A_PLANT = 20;
/** Numbers of repositories, each with the number of issues, comments and deliveries in a repository. */
const UPKEEP = [
  [100, 50_000],
  [1_000, 5_000],
  [10_000, 500],
] as const;

const atMost = (what: string, measured: number | null, most: number): Figure => ({
  what,
  measured,
  bound: { atMost: most },
});
const atLeast = (what: string, measured: number | null, least: number): Figure => ({
  what,
  measured,
  bound: { atLeast: least },
});

/** A figure without a bound: nothing was promised. */
const told = (what: string, measured: number | null): Figure => ({ what, measured, bound: null });

/** The lines that tests have printed with `printFigures` under this name. */
const printed = (lines: readonly Line[], of: string) => lines.filter((line) => line.figures === of);

/** Null: there is no line. A sum over nothing proves nothing. */
function sumOf(lines: readonly Line[], count: (line: Line) => number): number | null {
  return lines.length === 0 ? null : lines.reduce((sum, line) => sum + count(line), 0);
}

function shareOf(line: Line | undefined, part: string, whole: string): number | null {
  const [some, all] = [numberAt(line, part), numberAt(line, whole)];
  return some === null || all === null || all === 0 ? null : some / all;
}

/** The figures in what the simulation says of its seeds. */
function outcomesOf(lines: readonly Line[], seeds: number): Figure[] {
  const outcomes = lines.filter((line) => numberAt(line, "drift") !== null);
  return [
    atLeast("seeds played", outcomes.length, seeds),
    atMost(
      "fields that differ after an audit",
      sumOf(outcomes, (line) => numberAt(line, "drift") ?? 0),
      0,
    ),
    atMost(
      "fields that differ before it, of those that webhooks and catch-ups tell",
      sumOf(outcomes, (line) => numberAt(line, "missed") ?? 0),
      0,
    ),
    atMost(
      "processes that ended by themselves",
      sumOf(outcomes, (line) => listOf(line, "crashes").length),
      0,
    ),
    atMost(
      "seeds that did not come to an end",
      sumOf(outcomes, (line) => (line.hang === null ? 0 : 1)),
      0,
    ),
  ];
}

/** How often a tool's requests were answered, and by whom. */
const ANSWERED = {
  requests: "requests",
  mirror: "by the mirror",
  cache: "by what was kept",
  forwarded: "forwarded",
} as const;

/** Every proof, the quick ones first. */
export const proofs: readonly Proof[] = [
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
    name: "kills",
    proves: "A process that is killed in a copy costs a page, and once the list beside it.",
    minutes: 3,
    commands: [
      { args: ["test", "test/scenario/kill-worker.test.ts"] },
      { args: ["test", "test/scenario/kill-tree.test.ts"], env: { KILLS: "3" } },
    ],
    figures: (lines) => {
      const [worker, tree] = ["worker", "tree"].map((program) =>
        printed(lines, "kills").find((line) => line.program === program),
      );
      return [
        atMost("pages read twice per kill, a worker", largestOf(worker, "readTwice"), 1),
        atMost("pages read twice per kill, the whole tree", largestOf(tree, "readTwice"), 2),
      ];
    },
  },
  {
    name: "page",
    proves:
      "In a real browser an operator signs in, watches a copy, finds and replays a failed delivery, sees the quota's plot move, repairs a hook, changes its secret and deletes it; axe finds nothing serious in light, in dark or on a phone.",
    minutes: 4,
    commands: [{ args: ["test", "test/operator/browser.test.ts"], env: { PAGE: "1" } }],
    figures: (lines) => {
      const [line] = printed(lines, "page");
      return [
        atLeast("views that were looked at, each in three ways", numberAt(line, "views"), 30),
        atLeast("pictures that were kept", numberAt(line, "shots"), 40),
        atMost("complaints of the browser", numberAt(line, "complaints"), 0),
      ];
    },
  },
  {
    name: "feed",
    proves:
      "A reader of the feed that is killed 100 times over 50,000 events misses none and is told none twice, while Postgres " +
      "is restarted and Redis emptied.",
    minutes: 15,
    commands: [{ args: ["test", "test/events/feed-kills.test.ts"], env: { EVENTS: "50000", KILLS: "100" } }],
    figures: (lines) => {
      const [line] = printed(lines, "feed");
      return [
        atLeast("events", numberAt(line, "events"), 50_000),
        atMost("of them missing", numberAt(line, "missing"), 0),
        atMost("told twice", numberAt(line, "twice"), 0),
      ];
    },
  },
  {
    name: "quota",
    proves: "Three worker processes use up a spent quota without one refusal, and a caller's write goes before them.",
    minutes: 8,
    commands: [{ args: ["test", "test/scenario/spent-quota.test.ts"], env: LARGE }],
    figures: (lines) => {
      const budgets = printed(lines, "spent quota");
      const silences = printed(lines, "secondary limit");
      return [
        ...[60, 500].flatMap((limit) => {
          const line = budgets.find((one) => one.limit === limit);
          return [
            atMost(`refused by upstream, of ${limit} requests an hour`, numberAt(line, "refused"), 0),
            atLeast(`share used, of ${limit} requests an hour`, numberAt(line, "shareUsed"), 0.8),
          ];
        }),
        atLeast("ms of silence after Retry-After: 4", numberAt(silences[0], "silentMs"), 4_000),
        atLeast("ms of silence after a limit without it", numberAt(silences[1], "silentMs"), 60_000),
      ];
    },
  },
  {
    name: "writes",
    proves: "Each of 1,000 writes is shown by the next read of another process, and is never taken back.",
    minutes: 15,
    commands: [{ args: ["test", "test/scenario/read-your-writes.test.ts"], env: { WRITES: "1000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "writes");
      return [
        atLeast("writes", numberAt(line, "writes"), 1_000),
        atMost("reads that did not show them", numberAt(line, "missing"), 0),
        atMost("differences at the end", numberAt(printed(lines, "written")[0], "differences"), 0),
      ];
    },
  },
  {
    name: "stores",
    proves:
      "The core of the suite passes on Debian's own Postgres 15 and Redis, on Postgres 16 and Valkey, and on Postgres 17, without a command of Redis that 6.2 has not.",
    minutes: 15,
    commands: STORES.flatMap(([postgres, redis]) =>
      CORE.map((files) => ({
        args: ["test", ...files],
        env: { TAIN_POSTGRES: postgres, TAIN_REDIS_FROM: redis, ...COUNTED },
      })),
    ),
    figures: (lines) =>
      STORES.flatMap(([postgres, redis], at) => {
        const own = (all: readonly Line[]) => all.slice(at * CORE.length, (at + 1) * CORE.length);
        const runs = own(printed(lines, "tests"));
        const newer = sumOf(
          own(printed(lines, "stores")),
          (line) => listOf(line, "newer").filter((name) => name !== ASKED_WHERE_KNOWN).length,
        );
        return [
          atLeast(
            `passed, Postgres ${postgres} and ${redis}`,
            sumOf(runs, (run) => numberAt(run, "passed") ?? 0),
            900,
          ),
          atMost(
            `failed, Postgres ${postgres} and ${redis}`,
            sumOf(runs, (run) => numberAt(run, "failed") ?? 1),
            0,
          ),
          atMost(`commands of Redis newer than 6.2, ${redis}`, newer, 0),
        ];
      }),
  },
  {
    name: "upgrade",
    proves:
      "Upgrades under load, from 0.1.0 and from the first build that asks, process by process, and the way back to the latter lose no " +
      "delivery and no read, and no read takes a second.",
    minutes: 5,
    commands: [{ args: ["test", "test/scenario/upgrade.test.ts"], env: { UPGRADE: "1" } }],
    figures: (lines) =>
      ["0.1.0", "the first build that asks"].flatMap((name, at) => {
        const line = printed(lines, "upgrade")[at];
        const from = `from ${name}`;
        return [
          atLeast(`deliveries and reads a second, each, ${from}`, numberAt(line, "perSecond"), 100),
          atMost(`deliveries that failed, ${from}`, numberAt(line, "failed"), 0),
          atMost(`requests that were refused or got no answer, ${from}`, numberAt(line, "problems"), 0),
          atMost(`ms of the slowest read, ${from}`, numberAt(line, "slowestMs"), 1_000),
        ];
      }),
  },
  {
    name: "alerts",
    proves:
      "A real Prometheus has data for each panel of the dashboard; each of the thirteen alerts fires when its cause is played, and ends with it.",
    minutes: 6,
    commands: [{ args: ["test", "test/scenario/alerts.test.ts"], env: { ALERTS: "1" } }],
    figures: (lines) => {
      const [line] = printed(lines, "alerts");
      return [atLeast("alerts that fired and ended", numberAt(line, "ended"), 13)];
    },
  },
  {
    name: "metrics-under-load",
    proves:
      "A real Prometheus reads a web process, a worker and the scheduler for ten minutes of reads, webhooks and a first copy: it " +
      "misses no reading, and each query of the dashboard has data.",
    minutes: 11,
    commands: [{ args: ["test", "test/scenario/metrics-under-load.test.ts"], env: { METRICS_MINUTES: "10" } }],
    figures: (lines) => {
      const [line] = printed(lines, "metrics under load");
      return [
        atLeast("minutes", numberAt(line, "minutes"), 10),
        atLeast("queries of the dashboard", numberAt(line, "queries"), 28),
        atMost("of them without data", numberAt(line, "without"), 0),
        atMost("readings that failed", numberAt(line, "missed"), 0),
        atLeast("answers to callers", numberAt(line, "answers"), 10_000),
        atLeast("deliveries applied", numberAt(line, "applied"), 500),
      ];
    },
  },
  {
    name: "metrics-cost",
    proves:
      "To count, and to be read by Prometheus every five seconds, costs a web process at most 3 % of its answers, of `list` and of " +
      "`receive`, by the clock and by its processor time.",
    minutes: 8,
    commands: [{ args: ["bench", "--only", "metrics", "--json"] }],
    figures: (lines) => [...ratiosOf(lines), ...ratiosOf(lines, "cpuRatio", ", by processor time")],
  },
  {
    name: "matrix",
    proves: "Every kind of caller is shown of every kind of repository, by every operation, what upstream shows them.",
    minutes: 40,
    commands: [{ args: ["test", "test/matrix/matrix.test.ts"], env: { MATRIX: "1" } }],
    figures: (lines) => [atLeast("cells", numberAt(printed(lines, "matrix")[0], "cells"), 50_000)],
  },
  {
    name: "corpus",
    proves:
      "No request of a corpus holds the event loop for more than 50 ms of processor time, or ends in 5xx: nasty values in every " +
      "parameter, body and argument, bombs of GraphQL and Markdown, 30,000 generated queries.",
    minutes: 20,
    commands: [{ args: ["test", "test/corpus/corpus.test.ts"], env: { CORPUS: "30000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "corpus");
      return [
        atLeast("requests", numberAt(line, "requests"), 40_000),
        atMost("of them failed", numberAt(line, "failed"), 0),
        atMost("ms that the worst held the event loop", numberAt(line, "longestMs"), 50),
      ];
    },
  },
  {
    name: "targets",
    proves:
      "200 targets hear of 10,000 changes, each in order and none lost, though ten are slow, ten fail for minutes and ten are " +
      "dead, all processes are killed twice, Redis is emptied and Postgres restarted.",
    minutes: 40,
    commands: [{ args: ["test", "test/events/many-targets.test.ts"], env: { TARGETS: "200", CHANGES: "10000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "targets");
      return [
        atLeast("changes", numberAt(line, "changes"), 10_000),
        atMost("live targets that missed one or heard it out of order", numberAt(line, "faulty"), 0),
        atMost("of 1,000 events sent twice", numberAt(line, "twicePerThousand"), 1),
      ];
    },
  },
  {
    name: "found",
    proves:
      "Of 6,000 changes in 12 streams three of ten webhooks are lost, and each change is heard of once: by its webhook, or by an event " +
      "that the mirror makes. Late webhooks repeat nothing.",
    minutes: 10,
    commands: [{ args: ["test", "test/events/found-storm.test.ts"], env: { CHANGES: "500", SEEDS: "12" } }],
    figures: (lines) => {
      const all = printed(lines, "found");
      const sum = (key: string) => all.reduce((total, line) => total + (numberAt(line, key) ?? 0), 0);
      return [
        atLeast("changes", sum("changes"), 6_000),
        atLeast("events that were made", sum("made"), 600),
        atMost("aspects that were not heard of", sum("missing"), 0),
        atMost("events that told nothing new", sum("again"), 0),
      ];
    },
  },
  {
    name: "tools",
    proves:
      "`gh`, PyGithub, octokit.rb, go-github, Probot, Danger, release-please, semantic-release, Renovate and an MCP server, unmodified, do their jobs in a private and in a public repository.",
    minutes: 5,
    commands: ["1", "public"].map((asked) => ({ args: ["test", "test/clients/tools.test.ts"], env: { TOOLS: asked } })),
    figures: (lines) => {
      const tools = printed(lines, "tools");
      return [
        atLeast("tools", tools.length, 10),
        atLeast("tools in a public repository", printed(lines, "tools in public").length, 10),
        ...tools.flatMap((line) =>
          Object.entries(ANSWERED).map(([of, words]) => told(`${line.tool}: ${words}`, numberAt(line, of))),
        ),
      ];
    },
  },
  {
    name: "hook-clients",
    proves: "`gh`, PyGithub and Probot, unmodified, work with hooks that live in the mirror.",
    minutes: 2,
    commands: [{ args: ["test", "test/events/hook-clients.test.ts"], env: { HOOK_CLIENTS: "1" } }],
    figures: (lines) => [atLeast("clients that were driven", printed(lines, "hook clients").length, 3)],
  },
  {
    name: "chain",
    proves:
      "Of three mirrors, each the next one's upstream, the last shows 500 changes of the root field by field, though two were not " +
      "told, and the root's quota pays for hardly more than for one mirror. Where the middle one is killed again and again, it becomes equal, too.",
    minutes: 5,
    commands: ["chain", "chain-kill"].map((name) => ({
      args: ["test", `test/events/${name}.test.ts`],
      env: { CHANGES: "500" },
    })),
    figures: (lines) => {
      const [line] = printed(lines, "chain");
      const [killed] = printed(lines, "chain-kill");
      const [paid, paidAlone] = [numberAt(line, "paid"), numberAt(line, "paidAlone")];
      return [
        atLeast("changes", numberAt(line, "changes"), 500),
        atMost("minutes until the last mirror is equal", numberAt(line, "minutes"), 18),
        atMost(
          "what the root's quota paid for, by what one mirror alone costs",
          paid && paidAlone && paid / paidAlone,
          1.25,
        ),
        atLeast("kills of the middle one", numberAt(killed, "kills"), 3),
        atMost("seconds from the last change until the last mirror is equal", numberAt(killed, "seconds"), 480),
      ];
    },
  },
  {
    name: "read-after-event",
    proves:
      "Who asks at the moment of a delivery sees what it tells, 20,000 times, by REST and GraphQL, in two processes.",
    minutes: 30,
    commands: [{ args: ["test", "test/events/sending.test.ts", "-t", "asks at the moment"], env: { READS: "20000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "read after event");
      return [
        atLeast("events", numberAt(line, "events"), 20_000),
        atMost("reads that were behind", numberAt(line, "behind"), 0),
      ];
    },
  },
  {
    name: "floor",
    proves:
      "10,000 issues and 5,000 pull requests with 95,000 comments and reviews are copied for hardly more than the 1,003 " +
      "requests and 50 points that no client can do without, and again for nothing.",
    minutes: 8,
    commands: [{ args: ["test", "test/scenario/floor.test.ts", "-t", "10,000 issues"], env: LARGE }],
    figures: (lines) => {
      const [line] = printed(lines, "floor");
      const cost = (what: string, unit: "rest" | "points") => numberAt(line, "costs", what, unit);
      const again = "copy again, catch-up, sweep";
      return [
        atMost("requests of the first copy", cost("first copy", "rest"), 1_030),
        atMost("points of the first copy", cost("first copy", "points"), 55),
        atMost("requests of the second copy", cost(again, "rest"), 0),
        atMost("points of the second copy", cost(again, "points"), 5),
        atMost("requests after a rotation of the token", cost(`after a rotation: ${again}`, "rest"), 0),
        atMost("requests of an audit", cost("second audit", "rest"), 0),
        atMost("points of an audit", cost("second audit", "points"), 50),
      ];
    },
  },
  {
    name: "sizes",
    proves:
      "A repository of 60,000 issues and 20,000 pull requests whose GraphQL pages above 25 time out is copied for little " +
      "more than if upstream had said 25 at once.",
    minutes: 25,
    commands: [{ args: ["test", "test/scenario/pull-pages.test.ts", "-t", "60,000 issues"], env: LARGE }],
    figures: (lines) => {
      const [line] = printed(lines, "bearable sizes");
      return [
        atMost("points, as a multiple", numberAt(line, "ratios", "points"), 1.3),
        atMost("seconds, as a multiple", numberAt(line, "ratios", "seconds"), 1.3),
      ];
    },
  },
  {
    name: "fleet",
    proves:
      "An idle hour of 1,000 repositories costs a request or query for each sweep, and a change of any kind is found " +
      "within five minutes without a webhook.",
    minutes: 12,
    commands: [{ args: ["test", "test/scenario/fleet.test.ts"], env: LARGE }],
    figures: (lines) => {
      const [app, token] = ["App", "token"].map((as) => printed(lines, "idle hour").find((line) => line.as === as));
      return [
        atLeast("repositories", numberAt(token, "repositories"), 1_000),
        atMost("requests and queries, as an App", numberAt(app, "asked"), 12),
        atMost("points, as an App", numberAt(app, "points"), 12),
        atMost("requests, with a token", numberAt(token, "rest"), 12),
        atMost("points, with a token", numberAt(token, "points"), 100),
      ];
    },
  },
  {
    name: "isolation",
    proves:
      "Of 200 repositories a tenth fail for good, each in its own way: they delay no other, and cost twelve requests an hour each.",
    minutes: 15,
    commands: [{ args: ["test", "test/scenario/isolation.test.ts"], env: { FLEET: "200" } }],
    figures: (lines) => {
      const [line] = printed(lines, "isolation");
      return [
        atLeast("repositories", numberAt(line, "repositories"), 200),
        atLeast("of them broken", numberAt(line, "broken"), 20),
        atMost("requests an hour of the dearest", numberAt(line, "dearest"), 12),
        atMost("minutes until a change is shown", numberAt(line, "forGood"), 5),
      ];
    },
  },
  {
    name: "deliveries",
    proves:
      "In a lively hour of 10,000 deliveries, a third of them about pull requests, a delivery costs hardly anything, also where some are lost.",
    minutes: 40,
    commands: [
      { args: ["test", "test/scenario/delivery-cost.test.ts", "-t", "lively hour"], env: { DELIVERIES: "11500" } },
    ],
    figures: (lines) =>
      printed(lines, "delivery-cost").flatMap((line) => [
        atLeast(`deliveries that were applied, ${line.weather}`, numberAt(line, "deliveries"), 10_000),
        atMost(`requests for each, ${line.weather}`, numberAt(line, "requestsPerDelivery"), 0.02),
        atMost(`points for each, ${line.weather}`, numberAt(line, "pointsPerDelivery"), 0.02),
        atMost(`fields that differ at the end, ${line.weather}`, numberAt(line, "differences"), 0),
      ]),
  },
  {
    name: "agents",
    proves:
      "40 agents that poll the state and checks of 50 pull requests every 30 s for an hour, while builds run, cost a fiftieth of " +
      "what they would without a mirror, and the end of a run is shown within five seconds.",
    minutes: 25,
    commands: [{ args: ["test", "test/scenario/agents-day.test.ts"], env: { AGENTS: "40" } }],
    figures: (lines) => {
      const [line] = printed(lines, "agents day");
      return [
        atLeast("times less quota than without", numberAt(line, "less"), 50),
        atMost("ms until the end of a run is shown, 99th percentile", numberAt(line, "p99Ms"), 5_000),
      ];
    },
  },
  {
    name: "parts",
    proves:
      "The commits, files, threads and checks of 2,000 pull requests, 300 branches and 200 releases are copied for hardly more than the " +
      "requests that no client can do without, and again for nothing.",
    minutes: 10,
    commands: [{ args: ["test", "test/scenario/first-copy-of-parts.test.ts"], env: { PULLS: "2000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "first copy of parts");
      const [requests, floor] = [numberAt(line, "first", "requests"), numberAt(line, "floor")];
      return [
        atMost(
          "requests of the first copy, of the floor",
          requests === null || floor === null ? null : requests / floor,
          1.1,
        ),
        atMost("requests of the second copy", numberAt(line, "again", "requests"), 0),
        atMost("points of the second copy", numberAt(line, "again", "points"), 0),
      ];
    },
  },
  {
    name: "upkeep",
    proves:
      "With five million rows, of 100, 1,000 or 10,000 repositories, upkeep reads what has changed, and not what there is.",
    minutes: 15,
    commands: UPKEEP.map(([repositories, rows]) => ({
      args: ["test", "test/scenario/upkeep.test.ts"],
      env: { UPKEEP_REPOSITORIES: String(repositories), UPKEEP_ROWS: String(rows) },
    })),
    figures: (lines) =>
      UPKEEP.flatMap(([repositories]) => {
        const of = `of ${repositories.toLocaleString("en")} repositories`;
        const lineOf = (name: string) => printed(lines, name).find((line) => line.repositories === repositories);
        const [line, changed] = [lineOf("upkeep"), lineOf("upkeep of a change")];
        const [has, read] = [numberAt(changed, "has"), numberAt(changed, "ofTheMirror")];
        return [
          atLeast(`rows of issues, comments and deliveries, ${of}`, numberAt(line, "rows"), 5_000_000),
          ...["sweep", "check-deliveries", "schedule-audits", "prune", "status"].flatMap((task) => {
            const reads = numberAt(line, "readsOfATurn", task);
            return [
              atMost(
                `of these read while nothing changes: ${task}, ${of}`,
                numberAt(line, "readsOfTheMirror", task),
                1_000,
              ),
              // With a hundred repositories Postgres reads each table whole that has a row for each of them.
              ...(repositories < 1_000
                ? []
                : [
                    atMost(
                      `rows of any table for each repository, a turn: ${task}, ${of}`,
                      reads && reads / repositories,
                      20,
                    ),
                  ]),
              atMost(`ms of it: ${task}, ${of}`, numberAt(line, "ms", task), 60_000),
            ];
          }),
          atMost(`rows read after a change, by those that its repository has, ${of}`, has && read && read / has, 1.1),
        ];
      }),
  },
  {
    name: "many-repositories",
    proves:
      "With 10,000 repositories and 20 million rows an idle hour costs at most ten times what it costs with 1,000, and a delivery and a " +
      "read cost the same.",
    minutes: 20,
    commands: [{ args: ["test", "test/scenario/many-repositories.test.ts"], env: { MANY: "10000" } }],
    figures: (lines) => {
      const [idle] = printed(lines, "many repositories idle");
      const [line] = printed(lines, "many repositories");
      const times = (kind: string) => numberAt(idle, "times", kind);
      const ratio = (kind: string) => numberAt(line, "ratios", kind);
      return [
        atLeast("repositories", largestOf(idle, "repositories"), 10_000),
        atLeast("rows", largestOf(idle, "rows"), 20_000_000),
        atMost("times the processor time of an idle hour with a tenth of them", times("cpuMs"), 10),
        atMost("times the rows that Postgres reads in it", times("rowsRead"), 10),
        atMost("times the commands of Redis", times("redisCommands"), 10),
        atMost("times the requests to upstream, but for those of lists", times("requests"), 10),
        atMost("times the processor time of a delivery", ratio("deliveryMs"), 1.2),
        atMost("times the rows that Postgres reads for it", ratio("deliveryRows"), 1.2),
        atMost("times the processor time of a read", ratio("readMs"), 1.2),
      ];
    },
  },
  {
    name: "snapshots",
    proves: "Followed step by step without a webhook, every field of a recorded repository becomes upstream's.",
    minutes: 20,
    commands: [{ args: ["test", "test/scenario/snapshots.test.ts"], env: { SNAPSHOT_STEPS: "all" } }],
    figures: (lines) => {
      const [line] = printed(lines, "snapshots");
      return [
        atLeast("steps followed", numberAt(line, "followed"), 307),
        atLeast("changes among them that moved no updated_at", numberAt(line, "silent"), 151),
      ];
    },
  },
  {
    name: "memory",
    proves: "A worker that copies 100,000 issues needs no more memory than for 10,000.",
    minutes: 40,
    commands: [{ args: ["test", "test/scenario/memory.test.ts", "-t", "100,000 issues"], env: LARGE }],
    figures: (lines) => {
      const found = (nursery: string) => printed(lines, "memory").find((line) => line.nursery === nursery);
      return [
        atMost("peak of the large by that of the small", numberAt(found("as it runs"), "ratio"), 1.3),
        atMost("the same with a small nursery", numberAt(found("small"), "ratio"), 1.3),
      ];
    },
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
  {
    name: "streams",
    proves: "After 20 streams of changes of every kind, with all webhooks, some, or none, the mirror is equal.",
    minutes: 45,
    commands: ["live", "lost-webhooks", "missed-audit", "paging"].map((name) => ({
      args: ["test", `test/scenario/${name}.test.ts`],
      env: { SEEDS: "20" },
    })),
    figures: () => [],
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
    proves:
      "Each small bug that is planted in a copy of the sources is found by a test: one for each property and guard at least.",
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
    proves:
      "Each small bug in what follows upstream is found by one of the first 20 of these seeds, all of which are equal without it.",
    minutes: 60,
    commands: PLANTS_BY_SEEDS.map((plant) => ({
      args: ["simulate", "--seeds", `1..${SEEDS_A_PLANT}`, "--plant", plant, "--until-found", "--json"],
    })),
    figures: (lines) =>
      PLANTS_BY_SEEDS.map((plant) => {
        const seeds = lines.filter((line) => line.plant === plant);
        const isFound = seeds.some((line) => "replay" in line);
        return atMost(`seeds until ${plant} is found`, isFound ? seeds.length : null, SEEDS_A_PLANT);
      }),
  },
  {
    name: "redis",
    proves:
      "Played on a Cluster of six nodes, and on servers that Sentinels watch, whose masters are killed, the mirror becomes equal.",
    minutes: 50,
    commands: (["cluster", "sentinel"] as const).flatMap((redis) => shortSeedCommands("--redis", redis)),
    figures: (lines) => outcomesOf(lines, 40),
  },
  {
    name: "replicas",
    proves:
      "Each of 10,000 changes is shown by the next reads of four web processes behind PgBouncer, while one of their two replicas is five seconds behind.",
    minutes: 20,
    commands: Array.from({ length: 10_000 / CHANGES_A_COMMAND }, () => ({
      args: ["test", "test/scenario/replicas.test.ts"],
      env: { CHANGES: String(CHANGES_A_COMMAND) },
    })),
    figures: (lines) => {
      const sum = (name: string) => sumOf(printed(lines, "replicas"), (line) => numberAt(line, name) ?? 0);
      return [
        atLeast("changes", sum("changes"), 10_000),
        atLeast("statements that a replica answered", sum("byReplica"), 10_000),
        atMost("reads that did not show them", sum("wrong"), 0),
      ];
    },
  },
  {
    name: "stopped",
    proves:
      "A worker that stands still for 30 s, eight times, in the middle of its deliveries, loses them to another, and none fails.",
    minutes: 5,
    commands: [{ args: ["test", "test/workers/stopped-worker.test.ts"], env: { STOPS: "8" } }],
    figures: (lines) => {
      const [line] = printed(lines, "stopped worker");
      return [
        atLeast("stops", numberAt(line, "stops"), 8),
        atLeast("ms of each", numberAt(line, "stoppedMs"), 30_000),
        atLeast("jobs that another took over", numberAt(line, "takenOver"), 8),
        atMost("deliveries that failed", numberAt(line, "failed"), 0),
      ];
    },
  },
  {
    name: "slow-commits",
    proves:
      "Where each commit waits 5 ms for a synchronous replica, commits do not wait for each other as long as nobody listens to changes; " +
      "what one worker and two apply then, and with a listener.",
    minutes: 3,
    commands: [{ args: ["test", "test/scenario/slow-commits.test.ts"], env: { COMMITS: "10000" } }],
    figures: (lines) => {
      const all = printed(lines, "slow commits");
      const each = all.flatMap((line) => {
        const of = `${line.workers === 1 ? "one worker" : "two workers"}, ${line.isHeard ? "a listener" : "no listener"}`;
        return [
          told(`deliveries applied a second, ${of}`, numberAt(line, "perSecond")),
          atLeast(`ms of a commit, ${of}`, numberAt(line, "commitMs"), 5),
          line.isHeard
            ? told(`ms that commits waited for each other, ${of}`, numberAt(line, "queuedMs"))
            : atMost(`ms that commits waited for each other, ${of}`, numberAt(line, "queuedMs"), 0),
        ];
      });
      const perSecond = (workers: number) =>
        numberAt(
          all.find((line) => line.workers === workers && !line.isHeard),
          "perSecond",
        );
      const [one, two] = [perSecond(1), perSecond(2)];
      return [...each, atLeast("what two workers apply by what one does, no listener", one && two && two / one, 1)];
    },
  },
  {
    name: "redis-disk",
    proves:
      "Of what is acknowledged while Postgres is away nothing is lost, though Redis is killed 20 times in the middle of it; each " +
      "acknowledgement has waited for the disk, by strace's count.",
    minutes: 3,
    commands: [{ args: ["test", "test/receiver/redis-disk.test.ts"], env: { KILLS: "20", TRACED: "1" } }],
    figures: (lines) => {
      const [killed] = printed(lines, "redis killed");
      const [traced] = printed(lines, "redis traced");
      return [
        atLeast("kills of Redis", numberAt(killed, "kills"), 20),
        atLeast("deliveries that were acknowledged", numberAt(killed, "acknowledged"), 2_000),
        atMost("of them missing", numberAt(killed, "missing"), 0),
        atLeast("fsyncs while 20 were acknowledged, one after the other", numberAt(traced, "fsyncs"), 20),
      ];
    },
  },
  {
    name: "failover",
    proves:
      "The primary is killed and a synchronous replica promoted under 100 deliveries a second: what was acknowledged is there, and no kept page shows a row that was lost.",
    minutes: 3,
    commands: [{ args: ["test", "test/scenario/failover.test.ts"], env: { FAILOVER: "1" } }],
    figures: (lines) => {
      const [line] = printed(lines, "failover");
      return [
        atLeast("deliveries that were acknowledged", numberAt(line, "acknowledged"), 1_000),
        atMost("of them missing", numberAt(line, "missing"), 0),
        atMost("ms from the promotion until reads are answered again", numberAt(line, "answeredMs"), 10_000),
      ];
    },
  },
  {
    name: "pooler",
    proves: "Played through PgBouncer in transaction mode, the mirror becomes equal.",
    minutes: 25,
    commands: shortSeedCommands("--pooler"),
    figures: (lines) => outcomesOf(lines, 20),
  },
  {
    name: "partitions",
    proves:
      "Eight processes at four sites, with Postgres and Redis at two more, whose links are cut and healed for ten minutes, become equal " +
      "to upstream, spend no quota twice, and give no answer that is older than it says.",
    minutes: 13,
    commands: [{ args: ["simulate", "--partitions", "10", "--seed", "1", "--json"] }],
    figures: (lines) => {
      const [line] = lines.filter((one) => "cutPercent" in one);
      const of = (name: string) => numberAt(line, name);
      return [
        atLeast("processes", of("processes"), 8),
        atLeast("cuts", of("cuts"), 50),
        atLeast("percent of the time in which something was cut", of("cutPercent"), 80),
        atLeast("deliveries", of("deliveries"), 500),
        atLeast("reads that were answered", of("answered"), 3_000),
        atMost("of them older than they said", of("older"), 0),
        atMost("of them of what upstream never showed", of("unknown"), 0),
        atMost("requests that upstream refused for a limit", of("refused"), 0),
        atMost("units of quota that the mirror had not and believed to have", of("overstated"), 0),
        atMost("fields that differ after an audit", of("drift"), 0),
        atMost("fields that differ before it, of those that webhooks and catch-ups tell", of("missed"), 0),
        atMost("processes that ended by themselves", line ? listOf(line, "crashes").length : null, 0),
      ];
    },
  },
  {
    name: "edges",
    proves:
      "An edge whose lines to the centre are cut and healed six times answers every read, none of them younger than it says, refuses " +
      "every write, and shows afterwards what is written there.",
    minutes: 2,
    commands: [{ args: ["test", "test/scenario/edges.test.ts"], env: { CUTS: "6", WRITES: "3" } }],
    figures: (lines) => {
      const [line] = printed(lines, "edges");
      const of = (name: string) => numberAt(line, name);
      return [
        atLeast("cuts", of("cuts"), 6),
        atLeast("reads answered while it was cut off, or just healed", of("reads"), 200),
        atLeast("writes refused meanwhile, with a sentence", of("refused"), 12),
        atMost("milliseconds that the slowest of these reads took", of("slowestMs"), 4_000),
        atMost("milliseconds until the centre's state was shown again", of("healedAfterMs"), 15_000),
      ];
    },
  },
  {
    name: "workers",
    proves:
      "Fifty workers and ten schedulers behind PgBouncer do in a simulated hour what one does, on few connections, and hardly wait for locks.",
    minutes: 12,
    commands: [
      {
        args: ["test", "test/workers/many-workers.test.ts"],
        env: { WORKERS: "50", SCHEDULERS: "10", MINUTES: "60" },
      },
    ],
    figures: (lines) => {
      const [line] = printed(lines, "many workers");
      const of = (name: string) => numberAt(line, name);
      const again = line ? (of("attempts") ?? 0) - (of("deliveries") ?? 0) : null;
      return [
        atLeast("workers", of("workers"), 50),
        atLeast("schedulers", of("schedulers"), 10),
        atLeast("simulated minutes", of("minutes"), 60),
        atMost("connections to Postgres, with those of the web process and the test", of("postgres"), 60),
        atMost("connections to Redis", of("redis"), 900),
        atMost("statements that waited for a lock at one moment", of("locks"), 20),
        atMost("share of moments with a wait for a lock", shareOf(line, "looksWithLocks", "looks"), 0.5),
        atLeast("deliveries", of("deliveries"), 250),
        atMost("of them applied again", again, 0),
        atMost("requests to upstream a minute, by those of one worker", of("byOne"), 1.25),
      ];
    },
  },
  {
    name: "package",
    proves: "Packed, installed by npm into an empty directory and started there, Tain mirrors the demonstration.",
    minutes: 2,
    commands: [{ args: ["test", "test/launcher/package.test.ts"], env: { PACKAGE: "1" } }],
    figures: (lines) => {
      const [line] = printed(lines, "package");
      return [
        atLeast("repositories that are live", numberAt(line, "live"), 4),
        atMost("seconds to pack", numberAt(line, "pack"), 60),
        atMost("seconds to install, from the registry", numberAt(line, "install"), 300),
        atMost("seconds from the start to serving, Redis fetched", numberAt(line, "serving"), 120),
        atMost("seconds until all is copied", numberAt(line, "copied"), 120),
      ];
    },
  },
  {
    name: "deployment",
    proves:
      "Kubernetes' types and compose's schema take what we write for them; the image has the same layers each time, and works read-only and without rights.",
    minutes: 5,
    commands: [{ args: ["test", "test/deploy/deployment.test.ts"], env: { DEPLOYMENT: "1" } }],
    figures: (lines) => [
      atLeast("documents that Kubernetes' types take", numberAt(printed(lines, "chart")[0], "documents"), 16),
      atMost("seconds to build the image", numberAt(printed(lines, "image")[0], "seconds"), 600),
    ],
  },
  {
    name: "load",
    proves: "Under a mixed load of ten minutes no delivery is lost and no answer is wrong.",
    minutes: 12,
    commands: [{ args: ["bench", "--only", "mixed", "--json"], env: { SECONDS: "600", READS: "4" } }],
    figures: (lines) => {
      const line = lines.find((one) => one.name === "mixed");
      return [atMost("problems", line ? listOf(line, "problems").length : null, 0)];
    },
  },
  {
    name: "benchmarks",
    proves: "Each benchmark reaches its goal against its reference, at the usual sizes.",
    minutes: 60,
    commands: benchmarkNames.map((name) => ({ args: ["bench", "--only", name, "--json"] })),
    figures: (lines) => ratiosOf(lines),
  },
  {
    name: "benchmarks-large",
    proves: "The benchmarks whose goals are stated for large sizes reach them: 5,000,000 issues, and 50 GB of disk.",
    minutes: 240,
    commands: ["backfill", "copy", "growth", "deep", "memory", "idle"].map((name) => ({
      args: ["bench", "--only", name, "--json"],
      env: LARGE,
    })),
    figures: (lines) => ratiosOf(lines),
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

/** Twenty short seeds. Each command plays only a few, so that an interruption costs minutes. */
function shortSeedCommands(...kind: string[]): Command[] {
  return Array.from({ length: 20 / SHORT_SEEDS_A_COMMAND }, (_, index) => {
    const first = index * SHORT_SEEDS_A_COMMAND + 1;
    const range = `${first}..${first + SHORT_SEEDS_A_COMMAND - 1}`;
    const rest = ["--seeds", range, "--steps", "150", "--workers", "2", "--faults", "all", "--json"];
    return { args: ["simulate", ...kind, ...rest] };
  });
}

/** A figure for each line of a benchmark. */
function ratiosOf(lines: readonly Line[], ratio = "ratio", by = ""): Figure[] {
  return lines.flatMap((line) => {
    const bound = boundOf(line.goal);
    return bound ? [{ what: `${line.name}${by}`, measured: numberAt(line, ratio), bound }] : [];
  });
}

/** The bound in a goal such as `≥ 0.80` or `≤ 2.00`, as benchmarks print it. */
function boundOf(goal: unknown): Bound | null {
  const [, sign, number] = /^([≤≥]) ([\d.]+)$/.exec(String(goal)) ?? [];
  if (number === undefined) return null;
  return sign === "≤" ? { atMost: Number(number) } : { atLeast: Number(number) };
}

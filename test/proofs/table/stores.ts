import { type Command, type Line, largestOf, listOf, numberAt, type Proof } from "../proof.ts";
import { atLeast, atMost, COUNTED, inCase, outcomesOf, printed, shareOf, sumOf, told } from "./figures.ts";

/** Versions of Postgres, each with a source of Redis. `npm test` itself runs on Postgres 18. */
const STORES = [
  ["15", "deb"],
  ["16", "valkey"],
  ["17", "deb"],
] as const;
/** The quick tests, and the tests in which a store goes away. */
const CORE = [
  ["test", "--project", "quick"],
  ["test/workers", "test/scenario/stores.test.ts", "test/cli/doctor.test.ts"],
];
/** Tain sends this command only to a Redis that says that it is version 7.2 or newer. */
const ASKED_WHERE_KNOWN = "waitaof";
const SHORT_SEEDS_A_COMMAND = 5;
const CHANGES_A_COMMAND = 2_500;

/** Stores and processes that go away, are old, or are changed for others. */
export const STORE_PROOFS: readonly Proof[] = [
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
    name: "exports",
    proves: "100,000 issues are exported within bounded memory, and other programs read them back equal.",
    minutes: 3,
    commands: [{ args: ["test", "test/cli/exports.test.ts"], env: { EXPORTED: "100000" } }],
    figures: (lines) =>
      ["csv", "jsonl", "parquet"].flatMap((format) => {
        const line = printed(lines, "exports").find((one) => one.format === format);
        return inCase(format, [
          told("seconds", numberAt(line, "seconds")),
          atMost("MB of memory", numberAt(line, "megabytes"), 400),
        ]);
      }),
  },
  {
    name: "questions",
    proves:
      "The questions of docs/sql.md take half the lines on the views that they took on the tables, with the same answers, and with " +
      "1,000,000 issues none comes near the minute after which a reader's query is stopped.",
    minutes: 8,
    commands: [{ args: ["test", "test/docs/sql-at-scale.test.ts"], env: { QUESTIONS: "1000000" } }],
    figures: (lines) => {
      const all = printed(lines, "question");
      const sum = (name: string, some: readonly Line[]) => sumOf(some, (line) => numberAt(line, name) ?? 0);
      const asked = all.filter(({ wasAskedBefore }) => wasAskedBefore);
      const [onViews, onTables] = [sum("lines", asked), sum("linesOnTables", asked)];
      return [
        told("lines on the tables, of the questions from before there were views", onTables),
        told("the same on the views", onViews),
        atMost("share of it", onViews && onTables && onViews / onTables, 0.5),
        told("lines of all questions on the tables", sum("linesOnTables", all)),
        told("the same on the views", sum("lines", all)),
        atMost("answers that differ", sum("differs", all), 0),
        ...all.flatMap((line) =>
          inCase(String(line.heading), [
            told("ms on the tables", numberAt(line, "msOnTables")),
            atMost("ms on the views", numberAt(line, "ms"), 30_000),
            atMost("ms for a reader of one repository", numberAt(line, "msOfOne"), 30_000),
          ]),
        ),
      ];
    },
  },
  {
    name: "stores",
    proves: "The core of the suite passes on older stores, without a command of Redis that 6.2 has not.",
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
        return inCase(`Postgres ${postgres} and ${redis}`, [
          atLeast(
            "passed",
            sumOf(runs, (run) => numberAt(run, "passed") ?? 0),
            900,
          ),
          atMost(
            "failed",
            sumOf(runs, (run) => numberAt(run, "failed") ?? 1),
            0,
          ),
          atMost("commands newer than Redis 6.2", newer, 0),
        ]);
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
      "The next reads of four web processes show each of 10,000 changes, while one of their two replicas is five seconds behind.",
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
      "A worker that stands still for 30 s, in the middle of its deliveries, loses them to another, and none fails.",
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
      "Where each commit waits 5 ms for a synchronous replica, commits do not wait for each other as long as nobody listens to changes.",
    minutes: 3,
    commands: [{ args: ["test", "test/scenario/slow-commits.test.ts"], env: { COMMITS: "10000" } }],
    figures: (lines) => {
      const all = printed(lines, "slow commits");
      const each = all.flatMap((line) => {
        const of = `${line.workers === 1 ? "one worker" : "two workers"}, ${line.isHeard ? "a listener" : "no listener"}`;
        const queuedMs = numberAt(line, "queuedMs");
        return inCase(of, [
          told("deliveries a second", numberAt(line, "perSecond")),
          atLeast("ms of a commit", numberAt(line, "commitMs"), 5),
          line.isHeard ? told("ms that they queued", queuedMs) : atMost("ms that they queued", queuedMs, 0),
        ]);
      });
      const perSecond = (workers: number) =>
        numberAt(
          all.find((line) => line.workers === workers && !line.isHeard),
          "perSecond",
        );
      const [one, two] = [perSecond(1), perSecond(2)];
      return [...each, atLeast("times what one worker applies, by two, no listener", one && two && two / one, 1)];
    },
  },
  {
    name: "redis-disk",
    proves:
      "Nothing is lost of what is acknowledged while Postgres is away, though Redis is killed 20 times; each acknowledgement has waited " +
      "for the disk.",
    minutes: 3,
    commands: [{ args: ["test", "test/receiver/redis-disk.test.ts"], env: { KILLS: "20", TRACED: "1" } }],
    figures: (lines) => {
      const [killed] = printed(lines, "redis killed");
      const [traced] = printed(lines, "redis traced");
      return [
        atLeast("kills of Redis", numberAt(killed, "kills"), 20),
        atLeast("deliveries acknowledged", numberAt(killed, "acknowledged"), 2_000),
        atMost("of them missing", numberAt(killed, "missing"), 0),
        atLeast("fsyncs of 20 acknowledgements", numberAt(traced, "fsyncs"), 20),
      ];
    },
  },
  {
    name: "failover",
    proves:
      "A synchronous replica is promoted under 100 deliveries a second: what was acknowledged is there, and no cached page shows a lost row.",
    minutes: 3,
    commands: [{ args: ["test", "test/scenario/failover.test.ts"], env: { FAILOVER: "1" } }],
    figures: (lines) => {
      const [line] = printed(lines, "failover");
      return [
        atLeast("deliveries acknowledged", numberAt(line, "acknowledged"), 1_000),
        atMost("of them missing", numberAt(line, "missing"), 0),
        atMost("ms until reads are answered again", numberAt(line, "answeredMs"), 10_000),
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
      "Eight processes at four sites, whose links are cut and healed for ten minutes, become equal to upstream, spend no quota twice, and " +
      "give no answer that is older than it says.",
    minutes: 13,
    commands: [{ args: ["simulate", "--partitions", "10", "--seed", "1", "--json"] }],
    figures: (lines) => {
      const [line] = lines.filter((one) => "cutPercent" in one);
      const of = (name: string) => numberAt(line, name);
      return [
        atLeast("processes", of("processes"), 8),
        atLeast("cuts", of("cuts"), 50),
        atLeast("percent of the time with a cut", of("cutPercent"), 80),
        atLeast("deliveries", of("deliveries"), 500),
        atLeast("reads answered", of("answered"), 3_000),
        atMost("of them older than they said", of("older"), 0),
        atMost("of what upstream never showed", of("unknown"), 0),
        atMost("requests refused for a limit", of("refused"), 0),
        atMost("quota wrongly believed in", of("overstated"), 0),
        atMost("fields that differ after an audit", of("drift"), 0),
        atMost("fields that differ before it", of("missed"), 0),
        atMost("processes that ended by themselves", line ? listOf(line, "crashes").length : null, 0),
      ];
    },
  },
  {
    name: "edges",
    proves:
      "An edge that is cut off from the centre answers every read, none older than it says, refuses every write, and shows afterwards " +
      "what was written there.",
    minutes: 2,
    commands: [{ args: ["test", "test/scenario/edges.test.ts"], env: { CUTS: "6", WRITES: "3" } }],
    figures: (lines) => {
      const [line] = printed(lines, "edges");
      const of = (name: string) => numberAt(line, name);
      return [
        atLeast("cuts", of("cuts"), 6),
        atLeast("reads answered meanwhile", of("reads"), 200),
        atLeast("writes refused", of("refused"), 12),
        atMost("ms of the slowest read", of("slowestMs"), 4_000),
        atMost("ms until the centre's state was shown again", of("healedAfterMs"), 15_000),
      ];
    },
  },
  {
    name: "workers",
    proves:
      "Fifty workers and ten schedulers behind PgBouncer do what one does, on few connections, and hardly wait for locks.",
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
        atMost("connections to Postgres", of("postgres"), 60),
        atMost("connections to Redis", of("redis"), 900),
        atMost("statements that waited for a lock at once", of("locks"), 20),
        atMost("share of moments with such a wait", shareOf(line, "looksWithLocks", "looks"), 0.5),
        atLeast("deliveries", of("deliveries"), 250),
        atMost("of them applied again", again, 0),
        atMost("times the requests of one worker", of("byOne"), 1.25),
      ];
    },
  },
  {
    name: "upgrade",
    proves:
      "Upgrades from 0.3.0 under load, process by process, and the way back lose no delivery and no read, and no read takes a second.",
    minutes: 5,
    commands: [{ args: ["test", "test/scenario/upgrade.test.ts"], env: { UPGRADE: "1" } }],
    figures: (lines) =>
      ["0.3.0", "this version"].flatMap((maker, at) => {
        const line = printed(lines, "upgrade")[at];
        return inCase(`in a database of ${maker}`, [
          atLeast("deliveries and reads a second, each", numberAt(line, "perSecond"), 100),
          atMost("deliveries that failed", numberAt(line, "failed"), 0),
          atMost("requests without an answer", numberAt(line, "problems"), 0),
          atMost("ms of the slowest read", numberAt(line, "slowestMs"), 1_000),
        ]);
      }),
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
        atMost("seconds to install", numberAt(line, "install"), 300),
        atMost("seconds to serving", numberAt(line, "serving"), 120),
        atMost("seconds until all is copied", numberAt(line, "copied"), 120),
      ];
    },
  },
  {
    name: "deployment",
    proves:
      "Kubernetes' types and compose's schema take our files; the image has the same layers each time, and works read-only and without rights.",
    minutes: 5,
    commands: [{ args: ["test", "test/deploy/deployment.test.ts"], env: { DEPLOYMENT: "1" } }],
    figures: (lines) => [
      atLeast("documents that Kubernetes' types take", numberAt(printed(lines, "chart")[0], "documents"), 16),
      atMost("seconds to build the image", numberAt(printed(lines, "image")[0], "seconds"), 600),
    ],
  },
];

/** Twenty short seeds. Each command plays only a few, so that an interruption costs minutes. */
function shortSeedCommands(...kind: string[]): Command[] {
  return Array.from({ length: 20 / SHORT_SEEDS_A_COMMAND }, (_, index) => {
    const first = index * SHORT_SEEDS_A_COMMAND + 1;
    const range = `${first}..${first + SHORT_SEEDS_A_COMMAND - 1}`;
    const rest = ["--seeds", range, "--steps", "150", "--workers", "2", "--faults", "all", "--json"];
    return { args: ["simulate", ...kind, ...rest] };
  });
}

import { names as benchmarkNames } from "../../../bench/names.ts";
import { listOf, numberAt, type Proof } from "../proof.ts";
import { atLeast, atMost, inCase, LARGE, printed, ratiosOf, told } from "./figures.ts";

/** How often a tool's requests were answered, and by whom. */
const ANSWERED = {
  requests: "requests",
  mirror: "by the mirror",
  cache: "by the cache",
  forwarded: "forwarded",
} as const;

/** What callers, targets and operators get. */
export const CALLER_PROOFS: readonly Proof[] = [
  {
    name: "page",
    proves:
      "In a real browser an operator does each day's work on the page; axe finds nothing serious in light, in dark or on a phone. " +
      "Each view is told soon, however many repositories there are.",
    minutes: 8,
    commands: ["browser", "view-times"].map((name) => ({
      args: ["test", `test/operator/${name}.test.ts`],
      env: { PAGE: "1" },
    })),
    figures: (lines) => {
      const [line] = printed(lines, "page");
      return [
        atLeast("views, each in three ways", numberAt(line, "views"), 30),
        atLeast("pictures", numberAt(line, "shots"), 40),
        atMost("complaints of the browser", numberAt(line, "complaints"), 0),
        ...[1, 200, 1_000].flatMap((count) => {
          const views = printed(lines, "views").find(({ repositories }) => repositories === count);
          const slowest = atMost("ms of the slowest view, p95", numberAt(views, "ms"), 300);
          return inCase(`${count.toLocaleString("en")} repositories`, [slowest]);
        }),
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
    name: "feed",
    proves:
      "A reader of the feed that is killed 100 times over 50,000 events misses none and gets none twice, while Postgres " +
      "is restarted and Redis emptied.",
    minutes: 15,
    commands: [{ args: ["test", "test/events/feed-kills.test.ts"], env: { EVENTS: "50000", KILLS: "100" } }],
    figures: (lines) => {
      const [line] = printed(lines, "feed");
      return [
        atLeast("events", numberAt(line, "events"), 50_000),
        atMost("of them missing", numberAt(line, "missing"), 0),
        atMost("sent twice", numberAt(line, "twice"), 0),
      ];
    },
  },
  {
    name: "matrix",
    proves: "Every operation shows every kind of caller what upstream shows them, of every kind of repository.",
    minutes: 40,
    commands: [{ args: ["test", "test/matrix/matrix.test.ts"], env: { MATRIX: "1" } }],
    figures: (lines) => [atLeast("cells", numberAt(printed(lines, "matrix")[0], "cells"), 50_000)],
  },
  {
    name: "corpus",
    proves:
      "No request of a corpus of nasty values, bombs and generated queries holds the event loop for more than 50 ms, or ends in 5xx.",
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
    name: "holders",
    proves:
      "Whatever somebody signs with one secret of a repository, an organization or an App, nothing of others changes, is sent or waits.",
    minutes: 40,
    commands: [{ args: ["test", "test/matrix/holders.test.ts"], env: { HOLDERS: "3" } }],
    figures: (lines) => {
      const [line] = printed(lines, "holders");
      return [
        atLeast("deliveries", numberAt(line, "cells"), 50_000),
        atLeast("events", numberAt(line, "events"), 70),
        atLeast("deliveries of others beside them", numberAt(line, "honest"), 1_000),
        atMost("differences in what is not the signer's", numberAt(line, "faults"), 0),
      ];
    },
  },
  {
    name: "fuzz",
    proves:
      "No expensive request, generated or remembered, takes more than 50 ms of the event loop, 500 ms of Postgres or 64 MB, and an honest " +
      "caller is answered meanwhile.",
    minutes: 30,
    commands: [{ args: ["test", "test/corpus/fuzz.test.ts"], env: { FUZZ: "10000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "fuzz");
      return [
        atLeast("cases", numberAt(line, "cases"), 10_000),
        atMost("of them failed", numberAt(line, "failed"), 0),
        atLeast("reads of an honest caller", numberAt(line, "honest"), 1_000),
        atMost("of them failed", numberAt(line, "honestFailed"), 0),
        atMost("ms that the worst held the event loop", numberAt(line, "heldMs"), 50),
        atMost("ms of Postgres that the worst took", numberAt(line, "postgresMs"), 500),
        atMost("bytes that the worst took beside its own body", numberAt(line, "memoryBytes"), 64 * 2 ** 20),
      ];
    },
  },
  {
    name: "beside-attack",
    proves: "Ten honest readers are answered during attacks, at most three times as slow as alone.",
    minutes: 4,
    commands: [{ args: ["test", "test/corpus/beside-attack.test.ts"], env: { BESIDE: "20" } }],
    figures: (lines) => {
      const [line] = printed(lines, "beside attack");
      return ATTACKS.flatMap((attack) => {
        const one = line && listOf(line, "attacks").find((each) => isOf(each, attack));
        const of = (name: string) => (one === undefined ? null : numberAt({ one }, "one", name));
        return inCase(attack, [
          atLeast("reads", of("reads"), 100),
          told("ms of the slowest percent alone", of("aloneMs")),
          atMost("of them failed", of("failed"), 0),
          atMost("times the p99 alone", of("ratio"), 3),
          atMost("ms that the event loop was held", of("heldMs"), 50),
        ]);
      });
    },
  },
  {
    name: "tools",
    proves: "Ten tools, unmodified, do their jobs in a private and in a public repository.",
    minutes: 5,
    commands: ["1", "public"].map((asked) => ({ args: ["test", "test/clients/tools.test.ts"], env: { TOOLS: asked } })),
    figures: (lines) => {
      const tools = printed(lines, "tools");
      return [
        atLeast("tools", tools.length, 10),
        atLeast("tools in a public repository", printed(lines, "tools in public").length, 10),
        ...tools.flatMap((line) =>
          inCase(
            String(line.tool),
            Object.entries(ANSWERED).map(([of, words]) => told(words, numberAt(line, of))),
          ),
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
      "Of three mirrors in a chain the last shows 500 changes of the root, though the middle one is killed, and the root's quota pays for " +
      "hardly more than for one mirror.",
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
        atMost("times the quota that one mirror costs", paid && paidAlone && paid / paidAlone, 1.25),
        atLeast("kills of the middle one", numberAt(killed, "kills"), 3),
        atMost("seconds from the last change until the last mirror is equal", numberAt(killed, "seconds"), 480),
      ];
    },
  },
  {
    name: "read-after-event",
    proves:
      "Who asks at the moment of a delivery sees its change, 20,000 times, by REST and GraphQL, in two processes.",
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
    name: "targets",
    proves:
      "200 targets get 10,000 changes in order, though some are slow or dead, all processes are killed twice, Redis is emptied and Postgres restarted.",
    minutes: 40,
    commands: [{ args: ["test", "test/events/many-targets.test.ts"], env: { TARGETS: "200", CHANGES: "10000" } }],
    figures: (lines) => {
      const [line] = printed(lines, "targets");
      return [
        atLeast("changes", numberAt(line, "changes"), 10_000),
        atMost("live targets that missed one or got it out of order", numberAt(line, "faulty"), 0),
        atMost("of 1,000 events sent twice", numberAt(line, "twicePerThousand"), 1),
      ];
    },
  },
  {
    name: "found",
    proves:
      "Of 6,000 changes three of ten webhooks are lost, and each change is sent once: by its webhook, or by a synthetic event.",
    minutes: 10,
    commands: [{ args: ["test", "test/events/found-storm.test.ts"], env: { CHANGES: "500", SEEDS: "12" } }],
    figures: (lines) => {
      const all = printed(lines, "found");
      const sum = (key: string) => all.reduce((total, line) => total + (numberAt(line, key) ?? 0), 0);
      return [
        atLeast("changes", sum("changes"), 6_000),
        atLeast("synthetic events", sum("made"), 600),
        atMost("values that were not sent", sum("missing"), 0),
        atMost("events without news", sum("again"), 0),
      ];
    },
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
    name: "alerts",
    proves: "Under a real Prometheus, each of the thirteen alerts fires when its cause is played, and ends with it.",
    minutes: 6,
    commands: [{ args: ["test", "test/scenario/alerts.test.ts"], env: { ALERTS: "1" } }],
    figures: (lines) => {
      const [line] = printed(lines, "alerts");
      return [atLeast("alerts that fired and ended", numberAt(line, "ended"), 13)];
    },
  },
  {
    name: "metrics-under-load",
    proves: "A real Prometheus misses no reading under load, and each query of the dashboard has data.",
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
    proves: "Metrics cost a web process at most 3 % of its answers.",
    minutes: 8,
    commands: [{ args: ["bench", "--only", "metrics", "--json"] }],
    figures: (lines) => [
      ...inCase("the clock", ratiosOf(lines)),
      ...inCase("processor time", ratiosOf(lines, "cpuRatio")),
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

/** The attacks of `test/corpus/beside-attack.test.ts`. */
const ATTACKS = [
  "twelve of the dearest requests a second",
  "twelve of the dearest requests a second of a stranger",
  "two hundred half-sent bodies",
  "two hundred half-sent deliveries",
  "deliveries of 25 MB",
];

function isOf(one: unknown, attack: string): boolean {
  return typeof one === "object" && one !== null && "attack" in one && one.attack === attack;
}

import { largestOf, numberAt, type Proof } from "../proof.ts";
import { atLeast, atMost, inCase, LARGE, printed } from "./figures.ts";

/** Numbers of repositories, each with the number of issues, comments and deliveries in a repository. */
const UPKEEP = [
  [100, 50_000],
  [1_000, 5_000],
  [10_000, 500],
] as const;

/** What upstream is asked, and what that costs. */
export const QUOTA_PROOFS: readonly Proof[] = [
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
          return inCase(`${limit} requests an hour`, [
            atMost("refused by upstream", numberAt(line, "refused"), 0),
            atLeast("share used", numberAt(line, "shareUsed"), 0.8),
          ]);
        }),
        atLeast("ms of silence after Retry-After: 4", numberAt(silences[0], "silentMs"), 4_000),
        atLeast("ms of silence after a limit without it", numberAt(silences[1], "silentMs"), 60_000),
      ];
    },
  },
  {
    name: "floor",
    proves:
      "110,000 issues, pull requests, comments and reviews are copied for hardly more than the 1,003 requests and 50 points that no " +
      "client can do without, and again for nothing.",
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
      "A large repository whose GraphQL pages above 25 time out is copied for little more than if upstream had said 25 at once.",
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
        ...inCase("an App", [
          atMost("requests and queries", numberAt(app, "asked"), 12),
          atMost("points", numberAt(app, "points"), 12),
        ]),
        ...inCase("a token", [
          atMost("requests", numberAt(token, "rest"), 12),
          atMost("points", numberAt(token, "points"), 100),
        ]),
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
        atMost("requests an hour of the most expensive", numberAt(line, "dearest"), 12),
        atMost("minutes until a change is shown", numberAt(line, "forGood"), 5),
      ];
    },
  },
  {
    name: "deliveries",
    proves:
      "An hour of sixty lively repositories costs next to nothing, and where webhooks get lost, everything is exact five minutes later.",
    minutes: 25,
    commands: [
      { args: ["test", "test/scenario/delivery-cost.test.ts", "-t", "lively hour"], env: { DELIVERIES: "20000" } },
    ],
    figures: (lines) =>
      printed(lines, "delivery-cost").flatMap((line) => {
        const [rest, points] = [numberAt(line, "inTheHour", "rest"), numberAt(line, "inTheHour", "points")];
        const isCalm = line.weather === "calm";
        return inCase(String(line.weather), [
          atLeast("deliveries applied", numberAt(line, "deliveries"), 17_500),
          atMost("requests in all", rest, isCalm ? 60 : 4_750),
          atMost("points in all", points, isCalm ? 60 : 4_750),
          atMost("fields that differ five minutes later", numberAt(line, "afterFiveMinutes"), 0),
          atMost("fields that differ at the end", numberAt(line, "differences"), 0),
        ]);
      }),
  },
  {
    name: "parts",
    proves:
      "All parts of 2,000 pull requests, 300 branches and 200 releases are copied for hardly more than the requests that no client can " +
      "do without, and again for nothing.",
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
        const lineOf = (name: string) => printed(lines, name).find((line) => line.repositories === repositories);
        const [line, changed] = [lineOf("upkeep"), lineOf("upkeep of a change")];
        const [has, read] = [numberAt(changed, "has"), numberAt(changed, "ofTheMirror")];
        return inCase(`${repositories.toLocaleString("en")} repositories`, [
          atLeast("rows", numberAt(line, "rows"), 5_000_000),
          ...["sweep", "check-deliveries", "schedule-audits", "prune", "status"].flatMap((task) => {
            const reads = numberAt(line, "readsOfATurn", task);
            return [
              atMost(`idle rows of ${task}`, numberAt(line, "readsOfTheMirror", task), 1_000),
              // With a hundred repositories Postgres reads each table whole that has a row for each of them.
              ...(repositories < 1_000
                ? []
                : [atMost("of all tables, a repository", reads && reads / repositories, 20)]),
              atMost("ms", numberAt(line, "ms", task), 60_000),
            ];
          }),
          atMost("rows read after a change, by those of its repository", has && read && read / has, 1.1),
        ]);
      }),
  },
  {
    name: "many-repositories",
    proves:
      "An idle hour of 10,000 repositories costs at most ten times that of 1,000, and a delivery and a read cost the same.",
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
        atMost("times the processor time of an idle hour", times("cpuMs"), 10),
        atMost("times the rows read in it", times("rowsRead"), 10),
        atMost("times the commands of Redis", times("redisCommands"), 10),
        atMost("times the requests to upstream", times("requests"), 10),
        atMost("times the processor time of a delivery", ratio("deliveryMs"), 1.2),
        atMost("times the rows read for it", ratio("deliveryRows"), 1.2),
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
    name: "agents",
    proves:
      "40 agents that poll 50 pull requests for an hour cost a fiftieth of what they would without a mirror, and see the end of a build " +
      "within five seconds.",
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
];

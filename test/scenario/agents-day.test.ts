/**
 * Agents poll pull requests and their checks while builds run. What do they cost, by upstream's own meter, with Tain
 * and without it?
 */
import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { startBuilds } from "../../src/simulator/live/builds.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue } from "../../src/simulator/world/records.ts";
import type { CheckRun } from "../../src/simulator/world/records-code.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { scheduleCatchUps } from "../../src/sync/catch-up/catch-up.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { OWNER } from "../support/config.ts";
import { markChecksDue } from "../support/due.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";

/**
 * `AGENTS=40 npm test -- test/scenario/agents-day` plays a whole hour with 50 pull requests, `MINUTES=10` a part of it.
 */
const AGENTS = Number(process.env.AGENTS ?? 2);
const isWhole = process.env.AGENTS !== undefined;
const PULLS = isWhole ? 50 : 5;
const POLLS = isWhole ? 2 * Number(process.env.MINUTES ?? 60) : 6;
const POLL_MS = 30_000;
/** The agents look in turns, not all at the same moment. */
const STEPS = 3;
const AT_ONCE = 4;
const SHOWN_WITHIN_MS = 5_000;

const QUERY = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) {
  pullRequests(first: 50, states: OPEN) { nodes { number state headRefOid statusCheckRollup { state
    contexts(first: 20) { totalCount nodes { ... on CheckRun { name status conclusion } ... on StatusContext { context state } } } } } } } }`;

/** One look at everything: half of the agents have a script that asks by REST, the others one that asks by GraphQL. */
async function poll(base: string, fullName: string, { token, byRest }: Agent): Promise<Answered[]> {
  if (!byRest) {
    const [owner, name] = fullName.split("/");
    return [
      await askAt(base, "POST", "/graphql", {
        token,
        body: JSON.stringify({ query: QUERY, variables: { owner, name } }),
      }),
    ];
  }
  const list = await askAt(base, "GET", `/repos/${fullName}/pulls?state=open&per_page=100`, { token });
  const answers = [list];
  if (list.status !== 200) return answers;
  for (const { head } of list.body as { head: { sha: string } }[])
    answers.push(await askAt(base, "GET", `/repos/${fullName}/commits/${head.sha}/check-runs`, { token }));
  return answers;
}

interface Agent {
  token: string;
  byRest: boolean;
}

test(
  "agents that poll pull requests and checks while builds run cost a fiftieth of what they would without a mirror",
  async () => {
    await using world = await openWorld({
      env: { MIRROR: "checks", RATE_LIMIT_USER: "0", RATE_LIMIT_GRAPHQL: "0" },
      fill: ({ world: filled }) =>
        void generateWorld(filled, { seed: 11, repositories: 1, issues: 10, pulls: PULLS * 3, people: 20 }),
    });
    const { simulator, ctx, first } = world;
    const [owner = "", name = ""] = first.split("/");
    const repository = simulator.world.repositoryByName(owner, name)?.repository;
    if (!repository) throw new Error("The generated repository is not there");
    const pulls = [...repository.rows.issuesByCreated.ascending()]
      .filter((one): one is PullIssue => isPull(one) && one.state === "open" && one.pull.head.repositoryId !== null)
      .slice(0, PULLS);
    const tokenOf = (of: string) => {
      const scopes = ["repo"];
      // Each token has a limit of its own, and so an hour of its own, as each agent's account has.
      simulator.tokens.create({ token: of, login: OWNER, repositories: "all", kind: "classic", scopes, limit: 5_000 });
      return of;
    };
    const agents = Array.from({ length: AGENTS }, (_, at) => ({ token: tokenOf(`agent-${at}`), byRest: at % 2 === 0 }));
    // One agent of each kind asks upstream itself. This measures what an agent costs without Tain.
    const alone = [true, false].map((byRest) => ({ token: tokenOf(`alone-${byRest}`), byRest }));
    // One token alone would be refused before the hour is over.
    const another = tokenOf("alone-later");
    await world.mirror(first);
    await world.listen(first);
    await world.settleMarks();
    await markChecksDue(ctx);
    await world.settleMarks();

    const theirs = simulator.world.clock as SettableClock;
    // The mirror's clock went on while the marks were settled, and upstream's stood still.
    theirs.advance(ctx.clock.now().getTime() - theirs.now());
    simulator.meter.reset();
    const builds = startBuilds(simulator.world, {
      pulls,
      seed: 5,
      pushEveryMs: isWhole ? 600_000 : 90_000,
      buildMs: isWhole ? 240_000 : 60_000,
      app: "linter",
    });
    const lateness: number[] = [];
    let passed = 0;
    let asked = 0;
    let late = 0;
    const look = async (agent: Agent | undefined) => {
      for (const answer of agent ? await poll(world.url, first, agent) : []) {
        // A forwarded request may meet a time limit. The agent asks again with its next look.
        if (answer.status >= 500) late++;
        else expect(answer.status).toBe(200);
        asked++;
        if (answer.headers.has("x-tain-passed-through")) passed++;
      }
    };
    for (let step = 0; step < POLLS * STEPS; step++) {
      theirs.advance(POLL_MS / STEPS);
      world.advance(POLL_MS / STEPS);
      const ended = new Set(endedRuns(simulator.world.code.checkRuns.values()));
      builds.catchUp();
      const endedAt = performance.now();
      const seeing = endedRuns(simulator.world.code.checkRuns.values())
        .filter((run) => !ended.has(run) && pulls.some(({ pull }) => pull.head.sha === run.suite.headSha))
        .map(async ({ id }) => {
          await until(`the end of run ${id} is shown`, async () => {
            const { body } = await askAt(world.url, "GET", `/repos/${first}/check-runs/${id}`, {
              token: agents[0]?.token ?? "",
            });
            return body.status === "completed";
          });
          lateness.push(performance.now() - endedAt);
        });
      // Agents look at once, before the mirror has read what is new. They do not all look in one moment, which no
      // machine of two cores bears.
      const looking = agents.filter((_, at) => Math.floor(at / 2) % STEPS === step % STEPS);
      const polling = Array.from({ length: AT_ONCE }, async (_, start) => {
        for (let at = start; at < looking.length; at += AT_ONCE) await look(looking[at]);
      });
      await Promise.all([...polling, ...seeing]);
      if (step % STEPS === 0)
        for (const one of alone)
          await poll(simulator.url, first, step < (POLLS * STEPS) / 2 ? one : { ...one, token: another });
      await world.settle();
      await markChecksDue(ctx);
      if (((step * POLL_MS) / STEPS) % ctx.config.catchUpIntervalMs < POLL_MS / STEPS) await scheduleCatchUps(ctx);
      await ctx.queues.refresh.clean(0, 1_000, "delayed");
      await dispatchMarks(ctx);
      await world.settle();
    }

    const isAlone = (caller: string) => caller.includes("alone-");
    const { callers, callersRoutes } = simulator.meter.read();
    const spent: Record<string, number> = {};
    for (const [caller, routes] of Object.entries(callersRoutes))
      for (const [route, { charged, points }] of Object.entries(routes)) {
        if (isAlone(caller)) continue;
        const of = `${caller.includes("agent-") ? "agents" : "mirror"}: ${route}`;
        spent[of] = (spent[of] ?? 0) + (points || charged);
      }
    const costOf = (isCounted: (caller: string) => boolean) => {
      const counted = Object.entries(callers).filter(([caller]) => isCounted(caller));
      const sum = (bucket: string, of: "charged" | "points") =>
        counted.reduce((total, [, buckets]) => total + (buckets[bucket]?.[of] ?? 0), 0);
      return { requests: sum("core", "charged"), points: sum("graphql", "points") };
    };
    const withTain = costOf((caller) => !isAlone(caller));
    const each = costOf(isAlone);
    const without = { requests: (each.requests * AGENTS) / 2, points: (each.points * AGENTS) / 2 };
    lateness.sort((a, b) => a - b);
    const p99 = lateness[Math.floor(lateness.length * 0.99)] ?? 0;
    printFigures("agents day", {
      agents: AGENTS,
      polls: POLLS,
      asked,
      passed,
      late,
      withTain,
      spent,
      without,
      less: (without.requests + without.points) / (withTain.requests + withTain.points),
      ended: lateness.length,
      p50Ms: Math.round(lateness[Math.floor(lateness.length / 2)] ?? 0),
      p99Ms: Math.round(p99),
    });
    expect(lateness.length).toBeGreaterThan(0);
    if (!isWhole) return;
    expect(late).toBeLessThanOrEqual(asked / 1_000);
    expect(without.requests + without.points).toBeGreaterThan(50 * (withTain.requests + withTain.points));
    expect(p99).toBeLessThan(SHOWN_WITHIN_MS);
  },
  isWhole ? 6 * LONG_TEST_MS : LONG_TEST_MS,
);

function endedRuns(runs: Iterable<CheckRun>): CheckRun[] {
  return [...runs].filter(({ conclusion }) => conclusion !== null);
}

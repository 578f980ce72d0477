import { familyOf, memoryOf } from "./family.ts";
import { type Clients, pollOn } from "./instead/clients.ts";
import { SERVERS, type Standing } from "./instead/servers.ts";
import { Truth } from "./instead/truth.ts";
import { changeOn, readPaths, readTruth } from "./instead/upstream.ts";
import { median, rounded, type Trial } from "./measure.ts";
import { cpuSecondsOf, startServer } from "./processes.ts";
import { control, repositoriesAt } from "./upstream.ts";

const { env } = process;
const SECONDS = Number(env.SECONDS ?? 60);
/** How long upstream answers nobody, and how long clients read on afterwards. */
const OUTAGE_SECONDS = Number(env.OUTAGE_SECONDS ?? 15);
const RUNS = Number(env.RUNS ?? 1);
const ASKED = env.SERVERS?.split(",") ?? Object.keys(SERVERS);
const SCENARIOS: Record<string, { clients: number; withValidators: boolean; tokens: number }> = {
  "20 clients": { clients: 20, withValidators: false, tokens: 1 },
  "20 with validators": { clients: 20, withValidators: true, tokens: 1 },
  "20 of 20 people": { clients: 20, withValidators: false, tokens: 20 },
  "200 clients": { clients: 200, withValidators: false, tokens: 1 },
  "200 of 20 people": { clients: 200, withValidators: true, tokens: 20 },
};
const ASKED_SCENARIOS = env.SCENARIOS?.split(",") ?? Object.keys(SCENARIOS);
const SIZE = { REPOSITORIES: "3", ISSUES: "300", PULLS: "60", LIMITS: "service" };
const LATENCY_MS = 60;
const EVERY_MS = 5_000;
const CHANGES_PER_SECOND = 1;

/** Numbers alone, so that several runs have a median. */
export interface Outcome {
  /** Of upstream's quota, by clients and by what stands between. */
  charged: number;
  points: number;
  asked: number;
  /** Neither 200 nor 304, or no answer. */
  refused: number;
  p50: number;
  p99: number;
  /** Answers that upstream had left behind when they were asked for, and by how many milliseconds at most. */
  behind: number;
  behindMs: number;
  /** While upstream answered nobody. */
  askedCutOff: number;
  answeredCutOff: number;
  /** Once upstream was there again. */
  behindAfter: number;
  behindAfterMs: number;
  memoryMiB: number;
  cpuSeconds: number;
}

export const trial: Trial = {
  about: `clients that poll lists and issues of three lively repositories every ${EVERY_MS / 1_000} s for ${SECONDS} s, upstream ${LATENCY_MS} ms away and with its own limits, then cut off for ${OUTAGE_SECONDS} s: ${ASKED.join(", ")}`,
  async run() {
    const figures: Record<string, Record<string, unknown>> = {};
    const problems: string[] = [];
    for (const name of ASKED_SCENARIOS) {
      const scenario = SCENARIOS[name];
      if (!scenario) throw new Error(`There is no scenario ${name}: ${Object.keys(SCENARIOS).join(", ")}`);
      const outcomes: Record<string, Outcome[]> = {};
      for (let run = 0; run < RUNS; run++) {
        for (const server of ASKED) {
          const { outcome, unknown } = await play(server, scenario);
          outcomes[server] = [...(outcomes[server] ?? []), outcome];
          console.error(`${name}, ${server}: ${JSON.stringify(outcome)}`);
          if (unknown > 0) problems.push(`${server}, ${name}: ${unknown} answers that upstream never gave`);
        }
      }
      figures[name] = Object.fromEntries(Object.entries(outcomes).map(([server, runs]) => [server, middle(runs)]));
    }
    return { figures, problems };
  },
};

async function play(
  name: string,
  { clients, withValidators, tokens }: (typeof SCENARIOS)[string],
): Promise<{ outcome: Outcome; unknown: number }> {
  const open = SERVERS[name];
  if (!open) throw new Error(`There is no ${name}: ${Object.keys(SERVERS).join(", ")}`);
  await using upstream = await startServer("simulator-server.ts", SIZE);
  const { url } = upstream;
  const names = (await repositoriesAt(url)).map(({ fullName }) => fullName);
  const people = Array.from({ length: tokens }, (_, at) => `person-token-${at + 1}`);
  for (const token of people) await control(url, "POST", "tokens", { token, login: token, repositories: "all" });
  await using standing = await open({ url, token: "bench-token", repositories: names });
  const truth = new Truth();
  const repositories = await readTruth(url, truth, names);
  const who: Clients = { count: clients, withValidators, tokens: people };
  const polling = { url: standing.url, paths: readPaths(repositories), everyMs: EVERY_MS };
  const poll = (seconds: number) => pollOn(who, { ...polling, seconds });
  const setFault = (fault: object) => control(url, "POST", "faults", { http: [fault] });
  const whileChanging = async <T>(work: () => Promise<T>): Promise<T> => {
    const over = new AbortController();
    const changing = changeOn(url, truth, { repositories, perSecond: CHANGES_PER_SECOND, signal: over.signal });
    const [done] = await Promise.all([work().finally(() => over.abort()), changing]);
    return done;
  };

  const far = { kind: "slow", delayMs: LATENCY_MS };
  await setFault(far);
  const [polled, spent, cpu] = await whileChanging(async () => {
    // Each client's first read fills what keeps answers, and is no part of the figures.
    await poll(EVERY_MS / 1_000);
    await control(url, "POST", "meter/reset");
    const before = await cpuSeconds(standing);
    const read = await poll(SECONDS);
    const meter = (await control(url, "GET", "meter")) as { charged: number; points: number };
    return [read, meter, (await cpuSeconds(standing)) - before];
  });
  const memoryMiB = standing.pid === null ? 0 : ((await memoryOf(standing.pid)).all ?? 0);
  await setFault({ kind: "reset" });
  const cutOff = await poll(OUTAGE_SECONDS);
  await setFault(far);
  const back = await whileChanging(() => poll(OUTAGE_SECONDS));

  const { latencies } = polled;
  const behind = truth.behind(polled.answers);
  const behindAfter = truth.behind(back.answers);
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (part: number) => rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  return {
    outcome: {
      charged: spent.charged,
      points: spent.points,
      asked: polled.asked,
      refused: polled.asked - latencies.length,
      p50: at(0.5),
      p99: at(0.99),
      behind: behind.filter(Boolean).length,
      behindMs: most(behind),
      askedCutOff: cutOff.asked,
      answeredCutOff: cutOff.latencies.length,
      behindAfter: behindAfter.filter(Boolean).length,
      behindAfterMs: most(behindAfter),
      memoryMiB,
      cpuSeconds: rounded(cpu),
    },
    unknown: [...behind, ...behindAfter, ...truth.behind(cutOff.answers)].filter((ms) => ms === null).length,
  };
}

async function cpuSeconds({ pid }: Standing): Promise<number> {
  return pid === null ? 0 : await cpuSecondsOf([...(await familyOf(pid)).keys()]);
}

function most(figures: readonly (number | null)[]): number {
  return rounded(Math.max(0, ...figures.map(Number)));
}

/** The median of each figure. */
function middle(runs: readonly Outcome[]): Outcome {
  const names = Object.keys(runs[0] ?? {}) as (keyof Outcome)[];
  return Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]))])) as unknown as Outcome;
}

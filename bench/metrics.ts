import { openDatabase } from "../db/database.ts";
import { sql } from "../db/sql.ts";
import { openCorpus } from "./corpus.ts";
import { inTurn, startCorpusWeb } from "./corpus-web.ts";
import { openBenchDatabase } from "./databases.ts";
import { AT_ONCE, READ_SIZE, randomPages } from "./list.ts";
import { getRequest, openLoader } from "./load.ts";
import { type Benchmark, comparison, type Measured, median, medianInterval, ROUNDS, rounded } from "./measure.ts";
import type { ServerProcess } from "./processes.ts";
import { signedDeliveries, startReceiver } from "./receiving.ts";
import type { Cost } from "./serving.ts";
import { type TurnSide, takeTurns } from "./turns.ts";

const OPERATOR_TOKEN = "the-token-of-the-bench-operator";
const SWITCHED = ["--import", new URL("switched-metrics.ts", import.meta.url).href];
const HOW = { warmUps: 8, turns: 48, seconds: 0.1 };
const PROCESSES = [0, 1, 2, 3];
/** Prometheus usually reads every fifteen seconds. */
const SECONDS_BETWEEN_READINGS = 5;
/** Enough of them to say what one takes. */
const READINGS = 20;

/** Starts a process with `SWITCHED`, and says how it is asked. */
type Start = () => Promise<TurnSide>;

export const benchmark: Benchmark = {
  about:
    "answers of a web process that counts, watches itself and is read by Prometheus every five seconds, against the same process while it does nothing of it",
  async run() {
    return [await measureList(), await measureReceive()];
  },
};

async function measureList(): Promise<Measured> {
  const corpus = await openCorpus(READ_SIZE);
  return await measure("list", async () => {
    const { server, headers } = await startCorpusWeb(corpus, { OPERATOR_TOKEN }, SWITCHED);
    const requests = randomPages(corpus).map(({ ours }) => getRequest(server.url, ours, headers));
    return inTurn(server, requests, AT_ONCE);
  });
}

async function measureReceive(): Promise<Measured> {
  await using database = await openBenchDatabase();
  const db = openDatabase(database.url, { maxConnections: 1, applicationName: "bench metrics" });
  const start = async () => {
    const server = await startReceiver(database, { OPERATOR_TOKEN }, SWITCHED);
    return { server, ...signedDeliveries(server), connections: 64 };
  };
  // No worker takes up what arrives, and each reading counts what waits.
  const forget = () => db.query(sql`truncate deliveries`);
  return await measure("receive", start, forget).finally(() => db.close());
}

/**
 * Compares each process with itself. A turn in which it counts is held against the turn before or after, in which it
 * does not. The time of a reading is taken off the former. Two processes of one program differ by what the compiler
 * made of each. Four processes take short turns, so that what a turn leaves to be done falls into no turn of the same
 * process.
 */
async function measure(part: string, start: Start, forget: () => Promise<unknown> = async () => {}): Promise<Measured> {
  await using loader = openLoader();
  const rounds: Pair[][] = [];
  const readings: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await using resources = new AsyncDisposableStack();
    const sides: TurnSide[] = [];
    for (const _ of PROCESSES) {
      const side = await start();
      resources.use(side.server);
      sides.push(side);
    }
    const prepare = async (place: number, turn: number) => {
      await forget();
      await sides[place]?.server.ask(doesCount(place, turn) ? "count" : "rest");
    };
    const costs = await takeTurns(loader, sides, { ...HOW, prepare });
    const pairs: Pair[] = [];
    for (const [place, { server }] of sides.entries()) {
      const seconds = await secondsOfReading(server);
      readings.push(seconds);
      pairs.push(...pairsOf(costs[place] ?? [], (turn) => doesCount(place, turn), seconds));
    }
    rounds.push(pairs);
  }
  const pairs = rounds.flat();
  const [bySeconds, byCpu] = [pairs.map(ratioOf), pairs.map(([ours, theirs]) => theirs.cpuMicros / ours.cpuMicros)];
  const ofRounds = rounds.map((some) => median(some.map(ratioOf)));
  return {
    ...comparison(
      pairs.map(([ours, theirs]) => [ours.perSecond, theirs.perSecond]),
      { unit: "answers/s", goal: { atLeast: 0.97 }, part },
    ),
    // The spread of whole rounds: single turns differ too much to say anything.
    spread: [rounded(Math.min(...ofRounds)), rounded(Math.max(...ofRounds))],
    notes: {
      interval: medianInterval(bySeconds),
      cpuRatio: rounded(median(byCpu)),
      cpuInterval: medianInterval(byCpu),
      readingMs: rounded(median(readings) * 1_000),
    },
  };
}

/** What answers cost in two turns of a process that follow each other. */
type Pair = [counting: Cost, resting: Cost];

function ratioOf([counting, resting]: Pair): number {
  return counting.perSecond / resting.perSecond;
}

/**
 * Every other turn counts, and in every other four it is the other: each mode comes as often at each place among the
 * four processes.
 */
function doesCount(place: number, turn: number): boolean {
  return (place + turn + Math.floor(turn / 4)) % 2 === 0;
}

function pairsOf(costs: readonly Cost[], counts: (turn: number) => boolean, secondsRead: number): Pair[] {
  const pairs: Pair[] = [];
  for (let turn = 0; turn < costs.length; turn += 2) {
    const both = costs.slice(turn, turn + 2);
    const [counting, resting] = counts(turn) ? both : both.toReversed();
    if (!counting || !resting) continue;
    const left = 1 - secondsRead / SECONDS_BETWEEN_READINGS;
    pairs.push([{ perSecond: counting.perSecond * left, cpuMicros: counting.cpuMicros / left }, resting]);
  }
  return pairs;
}

/** Of its processor time. */
async function secondsOfReading(server: ServerProcess): Promise<number> {
  await server.ask("count");
  const before = await server.cpuSeconds();
  for (let reading = 0; reading < READINGS; reading++) await readFigures(server);
  return ((await server.cpuSeconds()) - before) / READINGS;
}

async function readFigures({ url }: ServerProcess): Promise<void> {
  const answer = await fetch(`${url}/-/metrics`, { headers: { Authorization: `Bearer ${OPERATOR_TOKEN}` } });
  const text = await answer.text();
  if (answer.status !== 200 || !text.includes("tain_")) throw new Error(`/-/metrics answers ${answer.status}`);
}

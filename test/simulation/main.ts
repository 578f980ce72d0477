/** `npm run simulate`: plays seeds against the mirror's own processes, and says for each whether the mirror became equal. */

import { mkdirSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, styleText } from "node:util";
import pg from "pg";
import { migrate } from "../../db/migrate.ts";
import { openCopy } from "../plants/copy.ts";
import { plants } from "../plants/plants.ts";
import { whyNoNetwork } from "../support/network.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { TOPOLOGIES, type Topology } from "../support/redis-topologies.ts";
import { openClock, type SharedClock } from "./clock.ts";
import { haveFailed, playPartitions } from "./partitions.ts";
import { type FaultKind, faultKinds } from "./schedule.ts";
import { hasFailed, type Outcome, simulate } from "./simulation.ts";

const USAGE = `Usage: npm run simulate -- [options]
  --seed N         the seed to play (default: 1)
  --seeds A..B     all of these
  --steps N        changes of upstream in each (default: 500)
  --workers N      worker processes (default: 4)
  --faults LIST    all (default), none, or some, comma separated: ${Object.keys(faultKinds).join(", ")}
  --redis KIND     server (default), sentinel or cluster; of the latter two the master is killed where Redis goes away
  --pooler         the processes reach Postgres through PgBouncer, in transaction mode
  --partitions N   instead of all faults: eight processes at four sites, whose links are cut and healed for N minutes
  --plant BUG      let the mirror run with a bug in it, to see that it is found: npm run plants -- --list
  --until-found    play no more seeds once one has found the bug; the exit status is 0 if one did
  --logs DIR       where to keep the logs of seeds that failed (default: var/simulation)
  --json           one line of JSON for each seed, and nothing else`;

const checkout = fileURLToPath(new URL("../../", import.meta.url));

interface Wish {
  seeds: number[];
  steps: number;
  workers: number;
  faults: ReadonlySet<FaultKind>;
  redis: "server" | Topology;
  pooler: boolean;
  /** Null: not of partitions. */
  partitionedMinutes: number | null;
  plant: string | null;
  untilFound: boolean;
  logs: string;
  json: boolean;
}

/** @throws Error that says what is wrong with the arguments */
function readWish(args: string[]): Wish | "help" {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args,
    options: {
      seed: text,
      seeds: text,
      steps: text,
      workers: text,
      faults: text,
      redis: text,
      pooler: { type: "boolean" },
      partitions: text,
      plant: text,
      "until-found": { type: "boolean", default: false },
      logs: text,
      json: { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help) return "help";
  const whole = (name: "seed" | "steps" | "workers" | "partitions", otherwise: number, least: number) => {
    const value = values[name] === undefined ? otherwise : Number(values[name]);
    if (!Number.isSafeInteger(value) || value < least)
      throw new Error(`--${name} should be a whole number from ${least} on, not "${values[name]}"`);
    return value;
  };
  const seed = whole("seed", 1, 0);
  const [, from = seed, to = seed] = /^(\d+)\.\.(\d+)$/.exec(values.seeds ?? "") ?? [];
  if (values.seeds !== undefined && !(values.seeds.includes("..") && Number(from) <= Number(to)))
    throw new Error(`--seeds should be like 1..200, not "${values.seeds}"`);
  const plant = values.plant ?? null;
  if (plant !== null && !plants.some(({ name }) => name === plant))
    throw new Error(`There is no bug "${plant}" to plant: ${plants.map(({ name }) => name).join(", ")}`);
  const untilFound = values["until-found"];
  if (untilFound && plant === null) throw new Error("--until-found needs a bug to find: --plant");
  return {
    seeds: Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => Number(from) + index),
    steps: whole("steps", 500, 1),
    workers: whole("workers", 4, 1),
    faults: readFaults(values.faults ?? "all"),
    redis: readRedis(values.redis ?? "server"),
    pooler: values.pooler ?? false,
    partitionedMinutes: values.partitions === undefined ? null : whole("partitions", 1, 1),
    plant,
    untilFound,
    logs: values.logs ?? join(checkout, "var", "simulation"),
    json: values.json ?? false,
  };
}

function readRedis(text: string): "server" | Topology {
  const known = ["server", ...TOPOLOGIES] as const;
  const found = known.find((one) => one === text);
  if (!found) throw new Error(`--redis should be ${known.join(", ")}, not "${text}"`);
  return found;
}

function readFaults(text: string): ReadonlySet<FaultKind> {
  if (text === "none") return new Set();
  const known = Object.keys(faultKinds) as FaultKind[];
  if (text === "all") return new Set(known);
  const named = text.split(",").map((name) => name.trim());
  for (const name of named)
    if (!known.includes(name as FaultKind)) throw new Error(`"${name}" is no fault: all, none, ${known.join(", ")}`);
  return new Set(named as FaultKind[]);
}

/** Answers the exit status: 0 when each mirror became equal to its upstream, or the bug that was to be found was. */
async function run(wish: Wish): Promise<number> {
  await using resources = new AsyncDisposableStack();
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.once(signal, () => {
      interrupted.abort();
      void resources.disposeAsync().finally(() => process.exit(1));
    });
  if (wish.partitionedMinutes !== null) return await runPartitions(wish, wish.partitionedMinutes, resources);
  const stores = resources.use(await openOwnStores({ redis: wish.redis, pooler: wish.pooler }));
  const template = "simulation_template";
  await makeTemplate(stores.postgres.url, template);
  const plant = plants.find(({ name }) => name === wish.plant);
  const copy = plant && resources.use(openCopy(checkout));
  if (plant) copy?.plant(plant);
  const root = copy?.root ?? checkout;
  const port = await freePort();
  const clock = openClockIn(wish, resources);
  let failed = 0;
  for (const seed of wish.seeds) {
    const directory = join(wish.logs, `seed-${seed}`);
    rmSync(directory, { recursive: true, force: true });
    const { steps, workers, faults } = wish;
    const options = { seed, steps, workers, faults, stores, clock, root, port, template, directory };
    const outcome = await simulate(options);
    const isBad = hasFailed(outcome);
    if (isBad) failed += 1;
    else rmSync(directory, { recursive: true, force: true });
    const replay = isBad ? { log: directory, replay: replayOf(wish, seed) } : {};
    if (wish.json) console.log(JSON.stringify({ ...outcome, ...(plant ? { plant: plant.name } : {}), ...replay }));
    else console.log(inWords(outcome, isBad ? directory : null, replayOf(wish, seed)));
    if (wish.untilFound && isBad) return 0;
  }
  return failed > 0 || wish.untilFound ? 1 : 0;
}

/** The same for partitions. */
async function runPartitions(wish: Wish, minutes: number, resources: AsyncDisposableStack): Promise<number> {
  const why = await whyNoNetwork();
  if (why !== null) throw new Error(`Partitions cannot be played here: ${why}`);
  const clock = openClockIn(wish, resources);
  let failed = 0;
  for (const seed of wish.seeds) {
    const directory = join(wish.logs, `partitions-${seed}`);
    rmSync(directory, { recursive: true, force: true });
    clock.reset();
    const opened = resources.use(new AsyncDisposableStack());
    const forMs = minutes * 60_000;
    const outcome = await playPartitions({ seed, forMs, clock, root: checkout, directory, resources: opened });
    await opened.disposeAsync();
    const isBad = haveFailed(outcome);
    if (isBad) failed += 1;
    else rmSync(directory, { recursive: true, force: true });
    console.log(JSON.stringify(outcome, null, wish.json ? undefined : 2));
  }
  return failed > 0 ? 1 : 0;
}

function openClockIn({ logs }: Wish, resources: AsyncDisposableStack): SharedClock {
  mkdirSync(logs, { recursive: true });
  const clock = resources.use(openClock(join(logs, `clock-${process.pid}`)));
  resources.defer(() => rmSync(clock.path, { force: true }));
  return clock;
}

function replayOf({ steps, workers, faults, redis, pooler, plant }: Wish, seed: number): string {
  const all = Object.keys(faultKinds).length;
  const named = faults.size === all ? "all" : faults.size === 0 ? "none" : [...faults].join();
  const kept = `${redis === "server" ? "" : ` --redis ${redis}`}${pooler ? " --pooler" : ""}`;
  const planted = plant === null ? "" : ` --plant ${plant}`;
  return `npm run simulate -- --seed ${seed} --steps ${steps} --workers ${workers} --faults ${named}${kept}${planted}`;
}

function inWords(outcome: Outcome, log: string | null, replay: string): string {
  const { seed, steps, deliveries, drift, missed, untold, differences, crashes, errors, hang } = outcome;
  const verdict = log === null ? styleText("green", "equal") : styleText("red", "NOT EQUAL");
  const struck = Object.values(outcome.faults).reduce((sum, one) => sum + one, 0);
  const lines = [
    `seed ${seed}: ${verdict} after ${steps} steps, ${deliveries} deliveries and ${struck} faults in ${outcome.simulatedMinutes} simulated minutes (${outcome.seconds} s)`,
  ];
  if (log !== null) {
    lines.push(`  drift ${drift}, missed before the audit ${missed}, left to the audit ${untold}`);
    if (hang) lines.push(`  did not come to an end: ${hang}`);
    lines.push(...crashes.map((crash) => `  crash: ${crash}`));
    lines.push(...Object.entries(errors).map(([error, times]) => `  logged ${times} times: ${error}`));
    lines.push(...differences.map((difference) => `  ${difference}`));
    lines.push(`  logs: ${log}`, `  again: ${replay}`);
  }
  return lines.join("\n");
}

async function makeTemplate(server: string, name: string): Promise<void> {
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  try {
    await admin.query(`drop database if exists ${name}`);
    await admin.query(`create database ${name}`);
  } finally {
    await admin.end();
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  await migrate(url.href);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Then what is played fails on the way, since its stores are closed under it. */
const interrupted = new AbortController();
try {
  const wish = readWish(process.argv.slice(2));
  if (wish === "help") console.log(USAGE);
  else process.exitCode = await run(wish);
} catch (error) {
  // All that was opened is being closed, and that ends the process.
  if (interrupted.signal.aborted) await new Promise(() => {});
  if (!(error instanceof Error) || !/^(--|There is no bug|".*" is no fault|Unknown option)/.test(error.message))
    throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}

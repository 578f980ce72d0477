/**
 * `npm run simulate` plays seeds against the mirror's own processes. It says for each seed whether the mirror became
 * equal to upstream.
 */

import { mkdirSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { styleText } from "node:util";
import pg from "pg";
import { migrate } from "../../db/migrate.ts";
import { openCopy } from "../plants/copy.ts";
import { plants } from "../plants/plants.ts";
import { whyNoNetwork } from "../support/network.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { openClock, type SharedClock } from "./clock.ts";
import { faultKinds } from "./fault-kinds.ts";
import { haveFailed, playPartitions } from "./partitions.ts";
import { hasFailed, type Outcome, simulate } from "./simulation.ts";
import { readWish, USAGE, type Wish, WishError } from "./wish.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));

/** Answers the exit status: 0 when each mirror became equal to its upstream, or when the planted bug was found. */
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

/** Does the same for partitions. */
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
  const { seed, steps, deliveries, drift, missed, untold, unfollowed, differences, crashes, errors, hang } = outcome;
  const verdict = log === null ? styleText("green", "equal") : styleText("red", "NOT EQUAL");
  const struck = Object.values(outcome.faults).reduce((sum, one) => sum + one, 0);
  const lines = [
    `seed ${seed}: ${verdict} after ${steps} steps, ${deliveries} deliveries and ${struck} faults in ${outcome.simulatedMinutes} simulated minutes (${outcome.seconds} s)`,
  ];
  if (log !== null) {
    lines.push(
      `  drift ${drift}, missed before the audit ${missed}, left to the audit ${untold}, by the feed alone ${unfollowed}`,
    );
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

/** An interruption closes the stores under the running simulation, so that simulation fails. */
const interrupted = new AbortController();
try {
  const wish = readWish(process.argv.slice(2));
  if (wish === "help") console.log(USAGE);
  else process.exitCode = await run(wish);
} catch (error) {
  // Whatever was opened is being closed, and then the process ends.
  if (interrupted.signal.aborted) await new Promise(() => {});
  if (!(error instanceof WishError)) throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}

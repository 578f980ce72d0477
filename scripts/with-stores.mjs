// `npm test`, the benchmarks, the simulation, the proofs and the plants: a program, and throw-away stores for those
// that need them.
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";
import { ensureDependencies } from "./dependencies.mjs";
import { runInForeground } from "./foreground.mjs";
import { findRuntime, runtimeEnvironment } from "./runtime.mjs";
import { watchForStop } from "./stopping.mjs";
import { openThrowAwayStores } from "./throw-away.mjs";
import { Refusal, say } from "./voice.mjs";

/** Tests store little, and some start a Postgres often, so that a large buffer would only cost time. */
const SMALL_STORES = { TAIN_POSTGRES_BUFFERS: "128MB" };

/**
 * The projects that `npm test` runs without arguments: all tests except those that take too long for every change
 * (test/tiers.ts).
 */
const EACH_TIME = ["--project", "quick", "--project", "others"];

/**
 * Runs vitest on `args`. It asks for the stores when the first test file needs them (test/support/global-setup.ts), so
 * that a run of files without stores starts at once. The stores are opened here and not in vitest, because the launcher
 * closes them however vitest ends.
 * @param {string[]} args
 */
export async function test(args) {
  const stopping = watchForStop();
  await ensureDependencies(stopping.signal);
  const runtime = await findRuntime();
  const vitest = join(CHECKOUT, "node_modules", "vitest", "vitest.mjs");
  const environment = withoutOwnInstance(runtimeEnvironment(runtime, { TEST_STORES: "launcher", ...SMALL_STORES }));
  const chosen = args.length > 0 ? args : EACH_TIME;
  const running = runInForeground(runtime, [vitest, "run", ...chosen], environment, stopping, { withMessages: true });
  /** @type {Promise<import("./stores.mjs").Stores> | undefined} */
  let opening;
  const failed = once(running.child, "message").then(async () => {
    opening = openThrowAwayStores(stopping.signal);
    const stores = await opening;
    const { databaseUrl, redisUrl } = stores;
    running.child.send({ databaseUrl, redisUrl }, () => {}); // Vitest may have ended in the meantime.
    return await stores.failed;
  });
  try {
    return await exitCodeOf(running, failed);
  } finally {
    const stores = await opening?.catch(() => undefined); // exitCodeOf has thrown its error.
    await stores?.close();
  }
}

/** @param {string[]} args */
export async function bench(args) {
  if (!existsSync(join(CHECKOUT, "bench", "main.ts")))
    throw new Refusal("There are no benchmarks here: bench/main.ts does not exist");
  // Benchmarks must measure real costs, so a commit waits for the disk.
  return await runWithStores("bench/main.ts", args, { durable: true });
}

/**
 * Opens no stores: the simulation has its own, since it stops them.
 * @param {string[]} args
 */
export async function simulate(args) {
  return await runWithoutStores("test/simulation/main.ts", args);
}

/**
 * Opens no stores: each proof is a run of the launcher, which opens them.
 * @param {string[]} args
 */
export async function proofs(args) {
  return await runWithoutStores("test/proofs/main.ts", args);
}

/**
 * Opens no stores: it compares descriptions of the schema.
 * @param {string[]} args
 */
export async function migration(args) {
  return await runWithoutStores("scripts/generate/migration.ts", args);
}

/**
 * Makes `dist`, the JavaScript of the npm package. npm calls it before it packs.
 * @param {string[]} args
 */
export async function emit(args) {
  return await runWithoutStores("scripts/generate/javascript.ts", args);
}

/**
 * One set of stores for the tests of all plants.
 * @param {string[]} args
 */
export async function plants(args) {
  return await runWithStores("test/plants/main.ts", args, { environment: SMALL_STORES });
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 */
async function runWithoutStores(program, args) {
  const stopping = watchForStop();
  await ensureDependencies(stopping.signal);
  const runtime = await findRuntime();
  const environment = withoutOwnInstance(runtimeEnvironment(runtime, {}));
  return await runInForeground(runtime, [join(CHECKOUT, program), ...args], environment, stopping).exited;
}

/**
 * The environment without the settings of the person's own instance, so that tests do not use them.
 * @param {NodeJS.ProcessEnv} environment
 */
function withoutOwnInstance(environment) {
  const own = ["DATABASE_URL", "REDIS_URL", "TAIN_HOME", "UPSTREAM_URL", "UPSTREAM_TOKEN"];
  for (const name of [...own, "APP_ID", "APP_PRIVATE_KEY", "APP_PRIVATE_KEY_FILE"]) delete environment[name];
  return environment;
}

/**
 * `TEST_DATABASE_URL` is a superuser's, on the cluster's `postgres` database.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ durable?: boolean, environment?: NodeJS.ProcessEnv }} [options]
 */
async function runWithStores(program, args, { durable = false, environment: more = {} } = {}) {
  const stopping = watchForStop();
  await ensureDependencies(stopping.signal);
  const runtime = await findRuntime();
  const stores = await openThrowAwayStores(stopping.signal, { durable });
  try {
    if (stopping.signal.aborted) return 1;
    const environment = withoutOwnInstance(
      runtimeEnvironment(runtime, {
        TEST_DATABASE_URL: stores.databaseUrl,
        TEST_REDIS_URL: stores.redisUrl,
        ...more,
      }),
    );
    const running = runInForeground(runtime, [join(CHECKOUT, program), ...args], environment, stopping);
    return await exitCodeOf(running, stores.failed);
  } finally {
    await stores.close();
  }
}

/**
 * Waits for the end of the program, and ends it when its stores fail.
 * @param {ReturnType<typeof runInForeground>} running
 * @param {Promise<string>} failed resolves to a sentence, or rejects when the stores cannot be opened
 */
async function exitCodeOf(running, failed) {
  try {
    const outcome = await Promise.race([running.exited, failed]);
    if (typeof outcome === "number") return outcome;
    say(outcome);
  } catch (error) {
    running.end();
    await running.exited;
    throw error;
  }
  running.end();
  await running.exited;
  return 1;
}

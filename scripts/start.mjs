// `npm start`: dependencies, runtime, stores, then the app, until a person asks to stop or one of them ends.
import { join } from "node:path";
import { endLeftoverApp, startApp } from "./app.mjs";
import { IS_PACKAGE, openStateDirectory, readSettingsFile, tainHome } from "./checkout.mjs";
import { ensureDependencies } from "./dependencies.mjs";
import { LockHeldError, takeLock } from "./lock.mjs";
import { lastingPostgresState } from "./postgres-state.mjs";
import { hasEnded } from "./processes.mjs";
import { findRuntime } from "./runtime.mjs";
import { stopRequested, watchForStop } from "./stopping.mjs";
import { openStores, publishStores } from "./stores.mjs";
import { Refusal, say } from "./voice.mjs";

// The app, Redis and Postgres may take 30 s each.
const STOP_PATIENCE_MS = 90_000;

/** @typedef {import("./stopping.mjs").Stopping} Stopping */

/**
 * Returns the exit code: 0 after a requested stop that went well.
 * @param {readonly string[]} args
 */
export async function start(args) {
  readSettingsFile();
  refuseInProduction();
  const stopping = watchForStop();
  await ensureDependencies(stopping.signal);
  const runtime = await findRuntime();
  if (runtime !== process.execPath)
    say(`Tain runs on the Node that npm has installed for it, since this one is ${process.version}`);
  const home = await openStateDirectory(tainHome());
  const lock = await lockHome(home, IS_PACKAGE ? "tain up" : "npm start");
  try {
    await endLeftoverApp(home);
    const stores = await openHomeStores(home, stopping.signal);
    try {
      const withdraw = await publishStores(home, stores);
      try {
        return await runApp({ home, lock, runtime, args, stores, stopping });
      } finally {
        await withdraw();
      }
    } finally {
      await stores.close();
    }
  } finally {
    await lock.release();
  }
}

/**
 * Takes the lock that allows one instance for each home. Waits for an instance that is just stopping.
 * @param {string} home
 * @param {string} purpose
 */
export async function lockHome(home, purpose) {
  for (let wasLeaving = false; ; ) {
    try {
      return await takeLock(join(home, "launcher.lock"), purpose);
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      const { holder } = error;
      // When npm is told to stop, it does not wait for the launcher. So a quick restart may find the old one still
      // stopping.
      if (holder.leaving && !wasLeaving) {
        say(`waiting for process ${holder.pid}, which is stopping`);
        wasLeaving = await hasEnded(holder, STOP_PATIENCE_MS);
        if (wasLeaving) continue;
      }
      throw new Refusal(
        `Tain already runs in ${home} (process ${holder.pid}, ${holder.purpose}): ` +
          "stop that one first, or set TAIN_HOME to another directory",
      );
    }
  }
}

/**
 * Opens the stores of `home`: those that DATABASE_URL and REDIS_URL name, and otherwise embedded ones.
 * @param {string} home
 * @param {AbortSignal} signal
 */
export async function openHomeStores(home, signal) {
  return await openStores({
    given: { databaseUrl: process.env.DATABASE_URL, redisUrl: process.env.REDIS_URL },
    postgres: async () => await lastingPostgresState(home),
    redis: async () => ({ state: home, programs: home, signal }),
  });
}

/**
 * @param {{
 *   home: string, lock: import("./lock.mjs").Lock, runtime: string, args: readonly string[],
 *   stores: import("./stores.mjs").Stores, stopping: Stopping,
 * }} given
 */
async function runApp({ home, lock, runtime, args, stores, stopping }) {
  if (stopping.signal.aborted) return 0;
  const postgres = process.env.DATABASE_URL ? "given" : "embedded";
  const environment = {
    ...{ DATABASE_URL: stores.databaseUrl, TAIN_POSTGRES: postgres },
    ...{ REDIS_URL: stores.redisUrl, TAIN_HOME: home },
  };
  const app = await startApp({ home, runtime, args: ["up", ...args], environment });
  const failed = stores.failed.then((failure) => ({ failure }));
  const event = await Promise.race([app.exited, failed, stopRequested(stopping)]);
  await lock.leaving();
  if (event && "code" in event) {
    if (event.code === 0) return 0;
    say(`Tain ended by itself (${event.by ?? `exit code ${event.code}`})`);
    return event.code ?? 1;
  }
  say(event ? `${event.failure}; stopping the rest` : "stopping");
  await app.stop(stopping.again);
  const { code, by } = await app.exited;
  // An app that gets SIGTERM before it listens for it is ended by the signal. That is a clean end, since no work had
  // begun.
  const isClean = code === 0 || by === "SIGTERM";
  if (!isClean) say(`Tain did not stop cleanly (${by ?? `exit code ${code}`})`);
  return event || !isClean ? 1 : 0;
}

/** Embedded stores have no backup, no replica and no upgrade. They are for demonstrations, not for production. */
function refuseInProduction() {
  if (process.env.NODE_ENV !== "production") return;
  const { env } = process;
  const needed = [
    { name: "DATABASE_URL", value: env.DATABASE_URL, standIn: "the embedded Postgres" },
    { name: "REDIS_URL", value: env.REDIS_URL, standIn: "the embedded Redis" },
    { name: "UPSTREAM_URL", value: env.UPSTREAM_URL, standIn: "the simulator" },
    { name: "UPSTREAM_TOKEN", value: env.UPSTREAM_TOKEN || env.APP_ID, standIn: "the simulator's token" },
  ];
  const missing = needed.filter(({ value }) => !value);
  if (missing.length === 0) return;
  const standIns = missing.map(({ standIn }) => standIn).join(", ");
  throw new Refusal(
    `With NODE_ENV=production ${standIns} would be refused: set ${missing.map(({ name }) => name).join(", ")}`,
  );
}

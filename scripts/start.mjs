// `npm start`: dependencies, runtime, stores, then the app, until somebody asks to stop or one of them ends.
import { join } from "node:path";
import { endLeftoverApp, startApp } from "./app.mjs";
import { openStateDirectory, readSettingsFile, tainHome } from "./checkout.mjs";
import { ensureDependencies } from "./dependencies.mjs";
import { LockHeldError, takeLock } from "./lock.mjs";
import { lastingPostgresState } from "./postgres-state.mjs";
import { hasEnded } from "./processes.mjs";
import { findRuntime } from "./runtime.mjs";
import { stopRequested, watchForStop } from "./stopping.mjs";
import { openStores, publishStores } from "./stores.mjs";
import { Refusal, say } from "./voice.mjs";

// The app, Redis and Postgres may take 30 s each.
const stopPatienceMs = 90_000;

/** Returns the exit code: 0 after a stop that was asked for and went well. */
export async function start(args) {
  readSettingsFile();
  refuseInProduction();
  const stopping = watchForStop();
  await ensureDependencies(stopping.signal);
  const runtime = await findRuntime();
  const home = await openStateDirectory(tainHome());
  const lock = await lockHome(home, "npm start");
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

/** The lock that makes one instance of a home. One that is just stopping is waited for. */
export async function lockHome(home, purpose) {
  for (let wasLeaving = false; ; ) {
    try {
      return await takeLock(join(home, "launcher.lock"), purpose);
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      const { holder } = error;
      // npm does not wait for us when it is told to stop, so a quick restart finds us still stopping.
      if (holder.leaving && !wasLeaving) {
        say(`waiting for process ${holder.pid}, which is stopping`);
        wasLeaving = await hasEnded(holder, stopPatienceMs);
        if (wasLeaving) continue;
      }
      throw new Refusal(
        `Tain already runs in ${home} (process ${holder.pid}, ${holder.purpose}): ` +
          "stop that one first, or set TAIN_HOME to another directory",
      );
    }
  }
}

/** The stores of `home`: what DATABASE_URL and REDIS_URL name, and embedded ones for the rest. */
export async function openHomeStores(home, signal) {
  return await openStores({
    given: { databaseUrl: process.env.DATABASE_URL, redisUrl: process.env.REDIS_URL },
    postgres: async () => await lastingPostgresState(home),
    redis: async () => ({ state: home, programs: home, signal }),
  });
}

async function runApp({ home, lock, runtime, args, stores, stopping }) {
  if (stopping.signal.aborted) return 0;
  const environment = { DATABASE_URL: stores.databaseUrl, REDIS_URL: stores.redisUrl, TAIN_HOME: home };
  const app = await startApp({ home, runtime, args: ["up", ...args], environment });
  const event = await Promise.race([
    app.exited.then(({ code, by }) => ({ exit: code ?? by })),
    stores.failed.then((failure) => ({ failure })),
    stopRequested(stopping).then(() => ({ stop: true })),
  ]);
  await lock.leaving();
  if (event.exit !== undefined) {
    if (event.exit === 0) return 0;
    say(`Tain ended by itself (${typeof event.exit === "number" ? `exit code ${event.exit}` : event.exit})`);
    return typeof event.exit === "number" ? event.exit : 1;
  }
  if (event.failure) say(`${event.failure}; stopping the rest`);
  else say("stopping");
  await app.stop(stopping.again);
  const { code, by } = await app.exited;
  // Asked to stop before it listens for that, the app ends by the signal itself: nothing had begun yet.
  const isClean = code === 0 || by === "SIGTERM";
  if (!isClean) say(`Tain did not stop cleanly (${by ?? `exit code ${code}`})`);
  return event.failure || !isClean ? 1 : 0;
}

/** What is embedded has no backup, no replica and no upgrade: good for a demo, wrong for production. */
function refuseInProduction() {
  if (process.env.NODE_ENV !== "production") return;
  const needed = {
    DATABASE_URL: "the embedded Postgres",
    REDIS_URL: "the embedded Redis",
    UPSTREAM_URL: "the simulator",
    UPSTREAM_TOKEN: "the simulator's token",
  };
  const isSet = (name) => Boolean(process.env[name] || (name === "UPSTREAM_TOKEN" && process.env.APP_ID));
  const missing = Object.keys(needed).filter((name) => !isSet(name));
  if (missing.length === 0) return;
  const stand = missing.map((name) => needed[name]).join(", ");
  throw new Refusal(`With NODE_ENV=production ${stand} would be refused: set ${missing.join(", ")}`);
}

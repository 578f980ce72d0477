// `npm run tain -- …`: the command line, on the stores of the running instance.
import { join } from "node:path";
import { appEntry } from "./app.mjs";
import { openStateDirectory, readSettingsFile, tainHome } from "./checkout.mjs";
import { ensureDependencies } from "./dependencies.mjs";
import { readIfThere } from "./files.mjs";
import { runInForeground } from "./foreground.mjs";
import { lockHolder } from "./lock.mjs";
import { findRuntime, runtimeEnvironment } from "./runtime.mjs";
import { watchForStop } from "./stopping.mjs";

/** @param {string[]} args */
export async function tain(args) {
  // People who know `npm start` type `tain start`.
  if (args[0] === "start") args = ["up", ...args.slice(1)];
  if (args[0] === "up" && !needsNoStores(args)) return await (await import("./start.mjs")).start(args.slice(1));
  readSettingsFile();
  const stopping = watchForStop();
  await ensureDependencies(stopping.signal);
  const runtime = await findRuntime();
  /** @param {NodeJS.ProcessEnv} environment */
  const run = async (environment) => {
    const given = runtimeEnvironment(runtime, environment);
    return await runInForeground(runtime, [appEntry(), ...args], given, stopping).exited;
  };
  if (needsNoStores(args)) return await run({});

  const home = await openStateDirectory(tainHome());
  const { DATABASE_URL, REDIS_URL } = process.env;
  if (DATABASE_URL && REDIS_URL) return await run({ TAIN_HOME: home });
  const running = await runningStores(home);
  if (running) {
    const { databaseUrl, redisUrl } = running;
    return await run({ DATABASE_URL: DATABASE_URL || databaseUrl, REDIS_URL: REDIS_URL || redisUrl, TAIN_HOME: home });
  }
  // Mistyped commands are refused before any store is started.
  const misread = await run({ TAIN_PARSE_ONLY: "1" });
  if (misread !== 0) return misread;
  // What starts stores is not loaded for the commands of a running instance.
  const { lockHome, openHomeStores } = await import("./start.mjs");
  const lock = await lockHome(home, `tain ${args[0]}`);
  try {
    const stores = await openHomeStores(home, stopping.signal);
    try {
      return await run({ DATABASE_URL: stores.databaseUrl, REDIS_URL: stores.redisUrl, TAIN_HOME: home });
    } finally {
      await stores.close();
    }
  } finally {
    await lock.release();
  }
}

/**
 * Whether the command uses no store, so that none has to be started.
 * @param {string[]} args
 */
function needsNoStores([command, ...args]) {
  return (
    command === undefined ||
    ["app", "help", "init", "mcp", "simulate", "web", "worker", "scheduler"].includes(command) ||
    (command === "migrate" && Boolean(process.env.DATABASE_URL)) ||
    [command, ...args].some((arg) => ["--help", "-h", "--version"].includes(arg))
  );
}

/**
 * @param {string} home
 * @returns {Promise<{ databaseUrl: string, redisUrl: string } | undefined>}
 */
async function runningStores(home) {
  if (!(await lockHolder(join(home, "launcher.lock")))) return undefined;
  const text = await readIfThere(join(home, "stores.json"));
  return text === undefined ? undefined : JSON.parse(text);
}

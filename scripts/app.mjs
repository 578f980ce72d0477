// The app's process: the launcher starts it, stops it with time to finish, and finds it again after a crash of the
// launcher.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CHECKOUT, IS_PACKAGE } from "./checkout.mjs";
import { messageOf } from "./failure.mjs";
import { readIfThere, writeSecret } from "./files.mjs";
import { hasEnded, isAlive, membersOfGroup, recordOf, signal } from "./processes.mjs";
import { runtimeEnvironment } from "./runtime.mjs";
import { Refusal, say } from "./voice.mjs";

const STOP_TIMEOUT_MS = 30_000;
// The app of a dead launcher was told to stop when the launcher died, so it has had time already.
const LEFTOVER_TIMEOUT_MS = 10_000;
const KILL_TIMEOUT_MS = 5_000;

/**
 * How a program ended: by an exit code or by a signal.
 * @typedef {{ code: number | null, by: NodeJS.Signals | null }} Ending
 */

/**
 * `stop` asks the app to end, and ends it by force when it takes too long or `hurry` resolves.
 * @typedef {{ exited: Promise<Ending>, stop(hurry: Promise<unknown>): Promise<void> }} App
 */

/** The file that Node runs. TAIN_APP_ENTRY replaces it in the launcher's own tests. */
export function appEntry() {
  if (process.env.TAIN_APP_ENTRY) return process.env.TAIN_APP_ENTRY;
  if (!IS_PACKAGE) return join(CHECKOUT, "src", "cli", "main.ts");
  const entry = join(CHECKOUT, "dist", "src", "cli", "main.js");
  // npm runs no script of ours where `ignore-scripts` is set, and then packs what is there.
  if (!existsSync(entry)) throw new Refusal(`${entry} is missing: this package was not made by \`npm run package\``);
  return entry;
}

/**
 * Starts the app. Its standard streams are ours.
 * @param {{ home: string, runtime: string, args: readonly string[], environment: NodeJS.ProcessEnv }} given
 * @returns {Promise<App>}
 */
export async function startApp({ home, runtime, args, environment }) {
  const child = spawn(runtime, ["--import", new URL("./parent-watch.mjs", import.meta.url).href, appEntry(), ...args], {
    env: runtimeEnvironment(runtime, { ...environment, TAIN_PARENT_FD: "3" }),
    // In its own process group the app gets Ctrl-C once, from the launcher, and its workers can be ended together with
    // it.
    detached: true,
    // Nothing is sent over the pipe: its end tells the app that the launcher has died.
    stdio: ["inherit", "inherit", "inherit", "pipe"],
  });
  const { pid } = child;
  const ended = once(child, "exit").then(
    ([code, by]) => ({ code, by }),
    (error) => {
      throw new Refusal(`${runtime} cannot be run: ${messageOf(error)}`, { cause: error });
    },
  );
  // Code that awaits the exit reports a failure to start. Without this handler, the rejection would end the launcher
  // earlier.
  ended.catch(() => {});
  child.stdio[3]?.on("error", () => {}); // An error means only that the app closed its end of the pipe.
  if (pid !== undefined) await writeSecret(join(home, "app.json"), JSON.stringify(await recordOf(pid)));

  const exited = ended.finally(async () => {
    if (pid !== undefined) signal(-pid, "SIGKILL"); // The app's workers may still run.
    await rm(join(home, "app.json"), { force: true });
  });
  return {
    exited,
    async stop(hurry) {
      child.kill("SIGTERM");
      const over = exited.then(() => undefined);
      const patience = delay(STOP_TIMEOUT_MS, `after ${STOP_TIMEOUT_MS / 1000} s`);
      const reason = await Promise.race([over, patience, hurry.then(() => "because you asked again")]);
      if (reason === undefined) return;
      say(`Tain has not stopped: ending it ${reason}`);
      if (pid !== undefined) signal(-pid, "SIGKILL");
      await exited;
    },
  };
}

/**
 * Ends the app of a launcher that died, and the processes that this app had started. A process is ended only if it is
 * proven to belong to this app.
 * @param {string} home
 */
export async function endLeftoverApp(home) {
  const text = await readIfThere(join(home, "app.json"));
  if (text === undefined) return;
  /** @type {import("./processes.mjs").ProcessRecord} */
  const leader = JSON.parse(text);
  const members = await membersOfGroup(leader.pid, `TAIN_HOME=${home}`);
  const left = (await isAlive(leader)) ? [leader, ...members] : members;
  for (const record of left) signal(record.pid, "SIGTERM");
  if (left.length > 0) say("ending what an interrupted start has left running");
  const deadline = Date.now() + LEFTOVER_TIMEOUT_MS;
  for (const record of left) {
    if (await hasEnded(record, Math.max(0, deadline - Date.now()))) continue;
    signal(record.pid, "SIGKILL");
    if (!(await hasEnded(record, KILL_TIMEOUT_MS)))
      throw new Refusal(`Process ${record.pid}, left by an earlier start, does not end`);
  }
  await rm(join(home, "app.json"), { force: true });
}

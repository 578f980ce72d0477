// The app's process: started so that it cannot outlive us unnoticed, stopped in its own time, found again after a
// crash.
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
const LEFTOVER_TIMEOUT_MS = 10_000; // A leftover has been told to stop when its launcher died; it is already late.
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
    // A group of its own: Ctrl-C reaches it through us alone, once, and its workers can be ended with it.
    detached: true,
    // The pipe carries nothing: its end tells the app that we are gone.
    stdio: ["inherit", "inherit", "inherit", "pipe"],
  });
  const { pid } = child;
  const ended = once(child, "exit").then(
    ([code, by]) => ({ code, by }),
    (error) => {
      throw new Refusal(`${runtime} cannot be run: ${messageOf(error)}`, { cause: error });
    },
  );
  // A failure to run it is reported where the exit is awaited; without this it would end us before.
  ended.catch(() => {});
  child.stdio[3]?.on("error", () => {}); // The app closed its end; its exit says the rest.
  if (pid !== undefined) await writeSecret(join(home, "app.json"), JSON.stringify(await recordOf(pid)));

  const exited = ended.finally(async () => {
    if (pid !== undefined) signal(-pid, "SIGKILL"); // Its workers may have outlived it.
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
 * Ends the app of a launcher that died, and the processes that this app had started. Only proven processes of its own
 * end.
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

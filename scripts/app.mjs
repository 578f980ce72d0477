// The app's process: started so that it cannot outlive us unnoticed, stopped in its own time, found again after a crash.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { checkout } from "./checkout.mjs";
import { readIfThere, writeSecret } from "./files.mjs";
import { hasEnded, isAlive, membersOfGroup, recordOf, signal } from "./processes.mjs";
import { runtimeEnvironment } from "./runtime.mjs";
import { Refusal, say } from "./voice.mjs";

const stopTimeoutMs = 30_000;
const leftoverTimeoutMs = 10_000; // A leftover has been told to stop when its launcher died; it is already late.

/** The file that Node runs. TAIN_APP_ENTRY replaces it in the launcher's own tests. */
export function appEntry() {
  return process.env.TAIN_APP_ENTRY || join(checkout, "src", "cli", "main.ts");
}

/** Starts the app. Returns `{ exited, stop }`; `exited` resolves to `{ code, by }`, the exit code or the signal. */
export async function startApp({ home, runtime, args, environment }) {
  const child = spawn(runtime, ["--import", new URL("parent-watch.mjs", import.meta.url).href, appEntry(), ...args], {
    env: runtimeEnvironment(runtime, { ...environment, TAIN_PARENT_FD: "3" }),
    // A group of its own: Ctrl-C reaches it through us alone, once, and its workers can be ended with it.
    detached: true,
    // The pipe carries nothing: its end tells the app that we are gone.
    stdio: ["inherit", "inherit", "inherit", "pipe"],
  });
  const ended = once(child, "exit").then(
    ([code, by]) => ({ code, by }),
    (error) => {
      throw new Refusal(`${runtime} cannot be run: ${error.message}`, { cause: error });
    },
  );
  // A failure to run it is reported where the exit is awaited; without this it would end us before.
  ended.catch(() => {});
  child.stdio[3]?.on("error", () => {}); // The app closed its end; its exit says the rest.
  if (child.pid !== undefined) await writeSecret(join(home, "app.json"), JSON.stringify(await recordOf(child.pid)));

  const exited = ended.finally(async () => {
    if (child.pid !== undefined) signal(-child.pid, "SIGKILL"); // Whatever of its group it did not take with it.
    await rm(join(home, "app.json"), { force: true });
  });
  return {
    exited,
    async stop(hurry) {
      child.kill("SIGTERM");
      const over = exited.then(() => true);
      const patience = delay(stopTimeoutMs).then(() => `after ${stopTimeoutMs / 1000} s`);
      const reason = await Promise.race([over, patience, hurry.then(() => "because you asked again")]);
      if (reason === true) return;
      say(`Tain has not stopped: ending it ${reason}`);
      signal(-child.pid, "SIGKILL");
      await exited;
    },
  };
}

/** Ends the app of a launcher that died, and what it had started, as far as they are provably its own. */
export async function endLeftoverApp(home) {
  const text = await readIfThere(join(home, "app.json"));
  if (text === undefined) return;
  const leader = JSON.parse(text);
  const left = await membersOfGroup(leader.pid, `TAIN_HOME=${home}`);
  if (await isAlive(leader)) left.push(leader);
  for (const record of left) signal(record.pid, "SIGTERM");
  if (left.length > 0) say("ending what an interrupted start has left running");
  for (const deadline = Date.now() + leftoverTimeoutMs; left.length > 0; ) {
    const record = left.pop();
    if (await hasEnded(record, Math.max(0, deadline - Date.now()))) continue;
    signal(record.pid, "SIGKILL");
    if (!(await hasEnded(record, 5_000)))
      throw new Refusal(`Process ${record.pid}, left by an earlier start, does not end`);
  }
  await rm(join(home, "app.json"), { force: true });
}

// Runs a program in the foreground. It shares our terminal, which sends it Ctrl-C directly.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PLACE } from "./checkout.mjs";
import { messageOf } from "./failure.mjs";
import { Refusal } from "./voice.mjs";

/**
 * `exited` resolves to the program's exit code, or to 1 if it was killed. `end` asks the program to stop.
 * `withMessages`: we and the program, which is `child`, send each other messages.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} environment
 * @param {import("./stopping.mjs").Stopping} stopping
 * @param {{ withMessages?: boolean }} [options]
 */
export function runInForeground(command, args, environment, stopping, { withMessages = false } = {}) {
  /** @type {import("node:child_process").StdioOptions} */
  const stdio = withMessages ? ["inherit", "inherit", "inherit", "ipc"] : "inherit";
  const child = spawn(command, args, { cwd: PLACE, env: environment, stdio });
  const pass = () => {
    /** @type {NodeJS.Signals} */
    const name = stopping.signal.reason;
    const cameFromTerminal = name === "SIGINT" && process.stdin.isTTY;
    if (!cameFromTerminal) child.kill(name);
  };
  stopping.signal.addEventListener("abort", pass);
  const exited = once(child, "exit").then(
    /** @returns {number} */
    ([code]) => code ?? 1,
    (error) => {
      throw new Refusal(`${command} cannot be run: ${messageOf(error)}`, { cause: error });
    },
  );
  return { child, exited, end: () => child.kill("SIGTERM") };
}

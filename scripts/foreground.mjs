// A program that a person sits in front of: it has our terminal, and so gets Ctrl-C from it directly.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PLACE } from "./checkout.mjs";
import { messageOf } from "./failure.mjs";
import { Refusal } from "./voice.mjs";

/**
 * `exited` resolves to the exit code, 1 when it was killed. `end` asks it to stop.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} environment
 * @param {import("./stopping.mjs").Stopping} stopping
 */
export function runInForeground(command, args, environment, stopping) {
  const child = spawn(command, args, { cwd: PLACE, env: environment, stdio: "inherit" });
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
  return { exited, end: () => child.kill("SIGTERM") };
}

// A program that a person sits in front of: it has our terminal, and so gets Ctrl-C from it directly.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { checkout } from "./checkout.mjs";
import { Refusal } from "./voice.mjs";

/** Returns `{ exited, end }`; `exited` resolves to `{ code }`, 1 when it was killed. */
export function runInForeground(command, args, environment, stopping) {
  const child = spawn(command, args, { cwd: checkout, env: environment, stdio: "inherit" });
  const pass = () => {
    const cameFromTerminal = stopping.signal.reason === "SIGINT" && process.stdin.isTTY;
    if (!cameFromTerminal) child.kill(stopping.signal.reason);
  };
  stopping.signal.addEventListener("abort", pass);
  const exited = once(child, "exit").then(
    ([code]) => ({ code: code ?? 1 }),
    (error) => {
      throw new Refusal(`${command} cannot be run: ${error.message}`, { cause: error });
    },
  );
  return { exited, end: () => child.kill("SIGTERM") };
}

import { execArgv, execPath, execve } from "node:process";
import { fileURLToPath } from "node:url";
import { type Command, CommandError } from "../terminal/command.ts";
import { COMPILED } from "../terminal/compiled.ts";

/** What is said of each. */
const COMMON = `

Takes all settings from the environment, and starts no store. SIGTERM or Ctrl-C stops it in good
order, within SHUTDOWN_TIMEOUT. The exit code is 0 then, 78 if it must not work with its
database, where a restart would end in the same way, and 1 after any other failure.`;

/** The processes that a deployment runs, each by itself: `tain up` runs them together. */
export const web = processCommand(
  "web",
  new URL("../../web.ts", import.meta.url),
  `
Runs the web process alone: webhooks, the API, the operator's page and probes, at HOST and PORT.
Any number may run, behind any load balancer.`,
);

export const worker = processCommand(
  "worker",
  new URL("../../../workers/main.ts", import.meta.url),
  `
Runs a worker alone: it applies webhooks, copies, compares, and sends events. Any number may run.
With METRICS_PORT it shows its metrics there.`,
);

export const scheduler = processCommand(
  "scheduler",
  new URL("../../../workers/scheduler.ts", import.meta.url),
  `
Runs the scheduler alone: it says when catch-ups, sweeps and audits are due. One is enough; more do
no harm. With METRICS_PORT it shows its metrics there.`,
);

function processCommand(name: string, entry: URL, about: string): Command {
  return {
    name,
    about: `${about}${COMMON}`,
    // This process becomes the other one: signals and the exit code are that one's own.
    run: async () => {
      if (!execve) throw new CommandError(`This system cannot replace a process: run ${fileURLToPath(entry)} instead`);
      return execve(execPath, [execPath, ...execArgv, fileURLToPath(entry)], {
        NODE_COMPILE_CACHE: COMPILED,
        ...process.env,
      });
    },
  };
}

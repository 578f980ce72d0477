import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { inherited } from "../support/config.ts";
import { CLOCK_FILE, CLOCK_SKEW } from "./clock.ts";
import type { Part } from "./schedule.ts";

const entries: Record<Part, string> = {
  web: "src/web.ts",
  worker: "workers/main.ts",
  scheduler: "workers/scheduler.ts",
};
/** The message that each part logs once it does its work. */
const ready: Record<Part, string> = { web: "Listening", worker: "Working", scheduler: "Scheduling" };
const clockModule = fileURLToPath(new URL("./clock.ts", import.meta.url));

/** Settings of all simulated processes. Their schedules have short periods, so that a simulation has many rounds. */
export const SETTINGS = {
  DATABASE_CONNECTIONS: "4",
  CATCH_UP_INTERVAL: "45s",
  SWEEP_INTERVAL: "40s",
  DELIVERY_CHECK_INTERVAL: "90s",
  SHUTDOWN_TIMEOUT: "5s",
  LOG_LEVEL: "info",
};

/** A place in a network where processes run, as on a machine of their own. */
export interface Site {
  /** The program and the arguments that run a command at this site. */
  within(command: string, ...args: string[]): [string, ...string[]];
  env: NodeJS.ProcessEnv;
}

export interface MirrorOptions {
  /** The folder of the sources that run: this checkout, or a copy of it. */
  root: string;
  env: NodeJS.ProcessEnv;
  clock: string;
  /** How many processes each part has. */
  parts: Readonly<Record<Part, number>>;
  /** The site where a process runs, and its own settings. Default: beside this process. */
  siteOf?: (part: Part, index: number) => Site;
  /** By how many ms the clock of a process is wrong. */
  skewOf: (part: Part, index: number) => number;
  /** The folder for the logs of all processes. */
  logDirectory: string;
}

interface Running {
  child: ChildProcess;
  log: WriteStream;
  isReady: Promise<void>;
  exited: Promise<void>;
}

/** A mirror as it is deployed: web processes, workers and schedulers. Each may be killed at any moment. */
export class Mirror implements AsyncDisposable {
  /** Messages of level error and above, with how often each was logged. */
  readonly errors: Record<string, number> = {};
  /** Processes that ended by themselves, each with the last lines that it printed. */
  readonly crashes: string[] = [];
  readonly #options: MirrorOptions;
  readonly #running = new Map<string, Running>();
  readonly #ending = new Set<ChildProcess>();
  readonly #deploying = new Set<Promise<void>>();
  #env: NodeJS.ProcessEnv;

  constructor(options: MirrorOptions) {
    this.#options = options;
    this.#env = options.env;
  }

  /** Starts the processes that do not run, and waits until they do their work. */
  async start(): Promise<void> {
    await Promise.all(this.#deploying);
    for (const [part, index] of this.#parts()) this.#start(part, index);
    await Promise.all([...this.#running.values()].map(({ isReady }) => isReady));
  }

  /** Ends the process by `kill -9`. */
  async kill(part: Part, index: number): Promise<void> {
    const running = this.#running.get(`${part}-${index}`);
    if (!running) return;
    this.#running.delete(`${part}-${index}`);
    this.#ending.add(running.child);
    running.child.kill("SIGKILL");
    await running.exited;
  }

  /** Starts a killed process again, without waiting for it. */
  restart(part: Part, index: number): void {
    if (!this.#running.has(`${part}-${index}`)) this.#start(part, index);
  }

  /**
   * Tells every process to stop, and starts it again with other settings, as a deployment does. It does not wait for
   * them.
   */
  deploy(env: NodeJS.ProcessEnv): void {
    this.#env = { ...this.#env, ...env };
    for (const [part, index] of this.#parts()) {
      const stopping = this.#stop(part, index).then(() => this.#start(part, index));
      this.#deploying.add(stopping);
      void stopping.finally(() => this.#deploying.delete(stopping));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#deploying);
    await Promise.all([...this.#parts()].map(([part, index]) => this.kill(part, index)));
  }

  *#parts(): Generator<[Part, number]> {
    for (const part of ["web", "scheduler", "worker"] as const)
      for (let index = 0; index < this.#options.parts[part]; index++) yield [part, index];
  }

  async #stop(part: Part, index: number): Promise<void> {
    const running = this.#running.get(`${part}-${index}`);
    if (!running) return;
    this.#running.delete(`${part}-${index}`);
    this.#ending.add(running.child);
    running.child.kill("SIGTERM");
    await running.exited;
  }

  #start(part: Part, index: number): void {
    const name = `${part}-${index}`;
    if (this.#running.has(name)) return;
    const { root, clock, logDirectory, skewOf, siteOf } = this.#options;
    const site = siteOf?.(part, index);
    const own: [string, ...string[]] = [process.execPath, "--import", clockModule, join(root, entries[part])];
    const [command, ...args] = site ? site.within(...own) : own;
    const env = { ...inherited, ...this.#env, ...site?.env };
    const child = spawn(command, args, {
      // The programs get neither the tests' stores nor the person's own settings, which this process was given.
      env: { ...env, [CLOCK_FILE]: clock, [CLOCK_SKEW]: String(skewOf(part, index)) },
      // Over this channel the child learns that this process has gone.
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const log = createWriteStream(join(logDirectory, `${name}.log`), { flags: "a" });
    const last: string[] = [];
    const { promise: isReady, resolve } = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on("line", (line) => {
        log.write(`${line}\n`);
        last.push(line);
        if (last.length > 20) last.shift();
        const { level = 60, msg = line } = parseLine(line);
        if (msg.includes(ready[part])) resolve();
        if (level >= 50) this.errors[msg.slice(0, 200)] = (this.errors[msg.slice(0, 200)] ?? 0) + 1;
      });
    }
    // `close` comes after the last output, `exit` may come before it.
    const exited = once(child, "close").then(([code, signal]) => {
      resolve();
      log.end();
      if (this.#ending.delete(child)) return;
      this.#running.delete(name);
      this.crashes.push(`${name} ended by itself (${code ?? signal}): ${last.slice(-8).join(" | ").slice(0, 1_500)}`);
    });
    this.#running.set(name, { child, log, isReady, exited });
  }
}

function parseLine(line: string): { level?: number; msg?: string } {
  try {
    return JSON.parse(line) as { level: number; msg: string };
  } catch (error) {
    if (error instanceof SyntaxError) return {}; // A crash's stack is no JSON.
    throw error;
  }
}

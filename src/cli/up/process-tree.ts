import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { REFUSED_STATUS } from "../../operations/shutdown.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { waitUnlessAborted } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";

/** One program of the tree. */
export interface TreeProgram {
  name: string;
  entry: URL;
  args?: readonly string[];
  /** Flags for Node.js itself. */
  nodeFlags?: readonly string[];
  env: NodeJS.ProcessEnv;
  /** How long it may take to stop before it is killed. */
  stopWithinMs: number;
  /** Set if the whole instance must end when this program ends: the sentence to print then. */
  fatal?: string;
  /** Called with each line of its stdout, which otherwise goes to our stderr. */
  onLine?: (line: string) => void;
  /**
   * Set if its stdout is ours, since it prints what a person started us for, and says by itself why it cannot. Its log
   * goes to stderr.
   */
  isHeard?: true;
}

interface Running {
  program: TreeProgram;
  child: ChildProcess;
  exited: Promise<Ending>;
  /** The times at which the program recently ended by itself. */
  endings: number[];
}

interface Ending {
  /** `exit code 1`, `ended by SIGKILL`, or why it could not be started. */
  how: string;
  /** Whether another start would end the same way: the program must not work with this database. */
  isFinal: boolean;
}

/**
 * The share of SHUTDOWN_TIMEOUT that each program may take to stop. Together they are all of it. `instance` is the
 * scheduler, the worker and the web in one process.
 */
export const STOP_SHARES = { scheduler: 0.1, worker: 0.6, web: 0.2, instance: 0.9, simulator: 0.1 };

/** The program's SHUTDOWN_TIMEOUT: it must give up, and log that, shortly before it would be killed. */
export function stopLimit({ stopWithinMs }: Pick<TreeProgram, "stopWithinMs">): string {
  return `${Math.max(100, stopWithinMs - 200)}ms`;
}

/** After this long, an end counts no more. */
const ENDINGS_WITHIN_MS = 60_000;

/**
 * The programs that make up an instance. A program that ends by itself is started again, a little later each time. When
 * it has ended five times within a minute, or its end is fatal, or it must not work with its database, `failed`
 * resolves to a sentence about it; null: the program has said it.
 *
 * A program may send variables over its channel. Its environment has them whenever it is started again.
 *
 * Each program has a channel to this process. If this process dies, even by `kill -9`, the channel closes and the
 * program stops.
 */
export class ProcessTree {
  readonly failed: Promise<string | null>;
  readonly #fail: (reason: string | null) => void;
  readonly #say: (line: string) => void;
  readonly #running = new Map<string, Running>();
  readonly #stopping = new AbortController();

  constructor(say: (line: string) => void) {
    this.#say = say;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    this.failed = promise;
    this.#fail = resolve;
  }

  start(program: TreeProgram): void {
    if (this.#stopping.signal.aborted) return;
    this.#spawn(program, []);
  }

  /**
   * Stops all, the last started first, each within its time. Answers the names of those that had to be killed.
   */
  async stop(): Promise<string[]> {
    this.#stopping.abort();
    const killed: string[] = [];
    for (const { program, child, exited } of [...this.#running.values()].reverse()) {
      child.kill("SIGTERM");
      const timer = setTimeout(() => {
        killed.push(program.name);
        child.kill("SIGKILL");
      }, program.stopWithinMs);
      await exited;
      clearTimeout(timer);
    }
    return killed;
  }

  #spawn(program: TreeProgram, endings: number[]): void {
    const { nodeFlags = [], args = [], env, isHeard } = program;
    const child = spawn(process.execPath, [...nodeFlags, fileURLToPath(program.entry), ...args], {
      env,
      // Our stdout is for our own messages, so the programs' logs go to stderr.
      stdio: ["ignore", program.onLine ? "pipe" : isHeard ? 1 : 2, 2, "ipc"],
    });
    let again = program;
    child.on("message", (settings: Record<string, string>) => {
      again = { ...again, env: { ...again.env, ...settings } };
    });
    if (program.onLine && child.stdout) createInterface({ input: child.stdout }).on("line", program.onLine);
    const exited = once(child, "exit").then(
      ([code, by]) => ({ how: by ? `ended by ${by}` : `exit code ${code}`, isFinal: code === REFUSED_STATUS }),
      (error: Error) => ({ how: `it cannot be run: ${error.message}`, isFinal: false }),
    );
    this.#running.set(program.name, { program, child, exited, endings });
    void exited.then((ending) => this.#ended(again, endings, ending));
  }

  async #ended(program: TreeProgram, before: number[], { how, isFinal }: Ending): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    if (isFinal && program.isHeard) return this.#fail(null);
    if (isFinal) return this.#fail(`The ${program.name} has ended (${how}); what it said of the reason stands above`);
    if (program.fatal) return this.#fail(`The ${program.name} has ended (${how}): ${program.fatal}`);
    const now = performance.now();
    const endings = [...before.filter((at) => at > now - ENDINGS_WITHIN_MS), now];
    if (endings.length >= RETRIES.program.attempts) {
      return this.#fail(
        `The ${program.name} has ended ${endings.length} times within a minute (last: ${how}); what it said of the reason stands above`,
      );
    }
    this.#say(`The ${program.name} has ended (${how}): starting it again`);
    const { signal } = this.#stopping;
    await waitUnlessAborted(waitAfterMs(endings.length, RETRIES.program, Math.random), signal);
    if (!signal.aborted) this.#spawn(program, endings);
  }
}

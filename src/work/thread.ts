import { once } from "node:events";
import { parentPort, Worker } from "node:worker_threads";
import { codeOf } from "../failure.ts";
import { Line, roomFor } from "./line.ts";

/** A task exceeded the thread's limit of time or memory. Trying again is of no use. */
export class TooMuchWorkError extends Error {
  override name = "TooMuchWorkError";
}

/** A message of the thread: it is ready, or its task has ended. */
type ThreadMessage<Done> = { ready: true } | { done: Done } | { failed: string };

/** The memory limit of a thread, unless it is given another. */
const MAX_MEMORY_MB = 192;

/**
 * Runs tasks on a thread, one after the other, for work that would hold the event loop. The thread is started when it is
 * first needed, and again after a task has broken it.
 */
export class Thread<Task, Done> {
  readonly #module: URL;
  readonly #budgetMs: number;
  readonly #memoryMb: number;
  readonly #line = new Line(roomFor(1));
  readonly #closed = new AbortController();
  /** Ends the running task. */
  #stop: AbortController | null = null;
  /** Null: it has to be started. */
  #worker: Worker | null = null;

  /**
   * @param module the thread's module, which calls `serveThread`
   * @param options.budgetMs how long a task may take before its thread is ended
   */
  constructor(module: URL, { budgetMs, memoryMb = MAX_MEMORY_MB }: { budgetMs: number; memoryMb?: number }) {
    this.#module = module;
    this.#budgetMs = budgetMs;
    this.#memoryMb = memoryMb;
  }

  /** How many tasks wait for the running one. */
  get waiting(): number {
    return this.#line.length;
  }

  /**
   * @param given buffers of the task that are handed over without copying them: they are empty here afterwards
   * @throws TooMuchWorkError
   */
  async run(task: Task, given: readonly ArrayBuffer[] = []): Promise<Done> {
    using _turn = await this.#line.enter(null, this.#closed.signal);
    // The thread may have been closed since the turn was given.
    this.#closed.signal.throwIfAborted();
    const stop = new AbortController();
    const { signal } = stop;
    this.#stop = stop;
    const worker = this.#worker ?? this.#started();
    let timer: NodeJS.Timeout | undefined;
    let said: ThreadMessage<Done>;
    try {
      if (worker !== this.#worker) await once(worker, "message", { signal });
      this.#worker = worker;
      const tooLong = new TooMuchWorkError(`A task took longer than ${this.#budgetMs} ms`);
      timer = setTimeout(() => stop.abort(tooLong), this.#budgetMs);
      worker.postMessage(task, given);
      [said] = await once(worker, "message", { signal });
    } catch (error) {
      this.#worker = null;
      await worker.terminate();
      if (signal.aborted) throw signal.reason;
      const isMemory = codeOf(error) === "ERR_WORKER_OUT_OF_MEMORY";
      throw isMemory ? new TooMuchWorkError("A task took too much memory", { cause: error }) : error;
    } finally {
      clearTimeout(timer);
    }
    if ("done" in said) return said.done;
    throw new Error("failed" in said ? said.failed : "The thread began anew in the middle of a task");
  }

  /** Ends the thread. Its open tasks fail. */
  async close(): Promise<void> {
    const closed = new Error("The thread is closed");
    this.#closed.abort(closed);
    this.#stop?.abort(closed);
    using _last = await this.#line.enter(null);
    await this.#worker?.terminate();
  }

  #started(): Worker {
    const worker = new Worker(this.#module, {
      resourceLimits: { maxOldGenerationSizeMb: this.#memoryMb },
      // Otherwise the thread's output would bypass the log.
      stdout: true,
      stderr: true,
    });
    // A thread alone must not keep the process alive.
    worker.unref();
    // A running task hears of it by itself.
    worker.on("error", () => {
      if (this.#worker === worker) this.#worker = null;
    });
    return worker;
  }
}

/**
 * For a thread's module: runs the tasks that arrive, one after the other.
 * @param givenOf the buffers of what is done that are handed over without copying them
 */
export function serveThread<Task, Done>(
  work: (task: Task) => Done | Promise<Done>,
  givenOf: (done: Done) => ArrayBuffer[] = () => [],
): void {
  parentPort?.on("message", async (task: Task) => {
    let said: ThreadMessage<Done>;
    let given: ArrayBuffer[] = [];
    try {
      const done = await work(task);
      said = { done };
      given = givenOf(done);
    } catch (error) {
      said = { failed: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
    parentPort?.postMessage(said, given);
  });
  parentPort?.postMessage({ ready: true } satisfies ThreadMessage<Done>);
}

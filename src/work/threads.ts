import { parentPort, Worker } from "node:worker_threads";

/** A task exceeded a thread's limit of time or memory. Trying again is of no use. */
export class TooMuchWorkError extends Error {
  override name = "TooMuchWorkError";
}

/** Too many tasks are waiting, so this one was refused. */
export class ThreadsBusyError extends Error {
  override name = "ThreadsBusyError";
}

interface QueuedTask<Task, Done> {
  task: Task;
  given: readonly ArrayBuffer[];
  resolve: (done: Done) => void;
  reject: (error: Error) => void;
}

interface Thread<Task, Done> {
  worker: Worker;
  current: QueuedTask<Task, Done> | null;
  timer: NodeJS.Timeout | undefined;
}

/** A message of a thread: it is ready, or its task has ended. */
type ThreadMessage<Done> = { ready: true } | { done: Done } | { failed: string };

/** The memory limit of a thread, unless it is given another. */
const MAX_MEMORY_MB = 192;

/** Runs tasks on threads, for work that would hold the event loop. A thread is started when it is first needed. */
export class Threads<Task, Done> {
  readonly #module: URL;
  readonly #size: number;
  readonly #mostWaiting: number;
  readonly #budgetMs: number;
  readonly #memoryMb: number;
  readonly #waiting: QueuedTask<Task, Done>[] = [];
  readonly #idle: Thread<Task, Done>[] = [];
  readonly #all = new Set<Thread<Task, Done>>();

  /**
   * @param module the thread's module, which calls `serveThread`
   * @param options.mostWaiting how many tasks may wait; more are refused
   * @param options.budgetMs how long a task may take before its thread is ended
   */
  constructor(
    module: URL,
    {
      size,
      mostWaiting,
      budgetMs,
      memoryMb = MAX_MEMORY_MB,
    }: { size: number; mostWaiting: number; budgetMs: number; memoryMb?: number },
  ) {
    this.#module = module;
    this.#size = size;
    this.#mostWaiting = mostWaiting;
    this.#budgetMs = budgetMs;
    this.#memoryMb = memoryMb;
  }

  /**
   * @param given buffers of the task that are handed over without copying them: they are empty here afterwards
   * @throws TooMuchWorkError, ThreadsBusyError
   */
  run(task: Task, given: readonly ArrayBuffer[] = []): Promise<Done> {
    if (this.#waiting.length >= this.#mostWaiting)
      return Promise.reject(new ThreadsBusyError(`${this.#waiting.length} tasks wait for a thread already`));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ task, given, resolve, reject });
      if (this.#idle.length === 0 && this.#all.size < this.#size) this.#start();
      this.#giveOut();
    });
  }

  /** Ends the threads. Their open tasks fail. */
  async close(): Promise<void> {
    const closed = new Error("The threads are closed");
    for (const { reject } of this.#waiting.splice(0)) reject(closed);
    await Promise.all(Array.from(this.#all, (thread) => this.#end(thread, closed)));
  }

  #start(): void {
    const worker = new Worker(this.#module, {
      resourceLimits: { maxOldGenerationSizeMb: this.#memoryMb },
      // Otherwise the thread's output would bypass the log.
      stdout: true,
      stderr: true,
    });
    // A thread alone must not keep the process alive.
    worker.unref();
    const thread: Thread<Task, Done> = { worker, current: null, timer: undefined };
    this.#all.add(thread);
    worker.on("message", (said: ThreadMessage<Done>) => this.#hear(thread, said));
    worker.on("error", (error: Error & { code?: string }) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      void this.#end(thread, isMemory ? new TooMuchWorkError("A task took too much memory", { cause: error }) : error);
    });
  }

  #hear(thread: Thread<Task, Done>, said: ThreadMessage<Done>): void {
    if (!this.#all.has(thread)) return;
    clearTimeout(thread.timer);
    const { current } = thread;
    thread.current = null;
    if ("done" in said) current?.resolve(said.done);
    else if ("failed" in said) current?.reject(new Error(said.failed));
    this.#idle.push(thread);
    this.#giveOut();
  }

  #giveOut(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#idle.pop();
      const waiting = thread && this.#waiting.shift();
      if (!waiting) return;
      thread.current = waiting;
      const tooLong = new TooMuchWorkError(`A task took longer than ${this.#budgetMs} ms`);
      thread.timer = setTimeout(() => this.#end(thread, tooLong), this.#budgetMs);
      thread.worker.postMessage(waiting.task, waiting.given);
    }
  }

  async #end(thread: Thread<Task, Done>, error: Error): Promise<void> {
    if (!this.#all.delete(thread)) return;
    clearTimeout(thread.timer);
    const at = this.#idle.indexOf(thread);
    if (at >= 0) this.#idle.splice(at, 1);
    if (thread.current) thread.current.reject(error);
    // The thread ended before it was ready. Another thread would too, so all waiting tasks fail.
    else for (const { reject } of this.#waiting.splice(0)) reject(error);
    if (this.#waiting.length > 0) this.#start();
    await thread.worker.terminate();
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

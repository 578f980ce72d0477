import type { Logger } from "./log.ts";

/**
 * Ctrl-C reaches a process from the terminal and, at the same moment, once more from npm: that is one request, not two.
 */
const ECHO_MS = 1_000;

/**
 * The exit status of a process that must not work with its database: another start would end the same way. It is
 * EX_CONFIG of sysexits.h; Node.js itself has none above 13.
 */
export const REFUSED_STATUS = 78;

/** How a process stops: because it is told to, or because it must not go on. */
export interface Shutdown {
  /** Aborts when the process is to stop. */
  readonly signal: AbortSignal;
  /**
   * Stops as on SIGTERM and ends with REFUSED_STATUS; the log says the error's message. Nothing, while it stops
   * already.
   */
  refuse(error: Error): void;
}

/**
 * A process is told to stop by SIGTERM, SIGINT, or the end of a parent process that opened a channel.
 *
 * From then on the process has `timeoutMs` to finish its work. After that, or on a second signal of the same kind, it
 * ends with status 1, and others take over its work as after a crash.
 */
export function openShutdown({ log, timeoutMs }: { log: Logger; timeoutMs: number }): Shutdown {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = (reason: string, level: "info" | "error" = "info") => {
    if (signal.aborted) return;
    log[level]({ reason }, "Stopping: finishing what has begun");
    const deadline = setTimeout(() => {
      log.error({ timeoutMs }, "Not finished in time; leaving the rest to other processes");
      process.exit(1);
    }, timeoutMs);
    deadline.unref();
    // BullMQ and ioredis may wait for ever, while they close, for an answer on a connection that an outage has taken.
    // Once nothing else keeps the process alive, everything that was begun is done.
    process.once("beforeExit", () => process.exit(process.exitCode ?? 0));
    controller.abort(reason);
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    let firstAt: number | null = null;
    process.on(name, () => {
      // One signal of each kind is one request: a terminal interrupts us, and then our parent tells us to stop.
      if (firstAt === null) {
        firstAt = performance.now();
        stop(name);
      } else if (performance.now() - firstAt > ECHO_MS) {
        log.error({ reason: name }, "Told to stop again: ending at once and leaving the rest to other processes");
        process.exit(1);
      }
    });
  }
  const orphaned = () => stop("the parent process has gone");
  if (process.connected) {
    process.on("disconnect", orphaned);
    // Listening to the channel must not keep a process alive that has finished.
    process.channel?.unref();
  } else if (process.connected === false) {
    orphaned(); // It went while we were loading; without a channel it would be undefined.
  }
  return {
    signal,
    refuse: (error) => {
      if (!signal.aborted) process.exitCode = REFUSED_STATUS;
      stop(error.message, "error");
    },
  };
}

/** Settles when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

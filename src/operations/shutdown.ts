import type { Logger } from "./log.ts";

/**
 * The terminal sends Ctrl-C to the process, and npm sends it once more at the same moment. Both count as one request to
 * stop.
 */
const ECHO_MS = 1_000;

/**
 * The exit status of a process that must not work with its database. A restart would end in the same way. It is
 * EX_CONFIG of sysexits.h; Node.js itself uses no status above 13.
 */
export const REFUSED_STATUS = 78;

/** Why a process stops: a signal asks it to, or it must not go on. */
export interface Shutdown {
  /** Aborts when the process is to stop. */
  readonly signal: AbortSignal;
  /**
   * Logs the error's message, stops as on SIGTERM, and exits with REFUSED_STATUS. Does nothing if the process is
   * stopping already.
   */
  refuse(error: Error): void;
}

/**
 * Watches for the requests to stop: SIGTERM, SIGINT, or the end of a parent process that opened a channel.
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
    // After an outage, BullMQ and ioredis may wait for ever, while they close, for an answer on a lost connection.
    // `beforeExit` means that nothing else is left to do.
    process.once("beforeExit", () => process.exit(process.exitCode ?? 0));
    // Work that waits throws this. By its name it has ended, and has not failed.
    controller.abort(new DOMException(reason, "AbortError"));
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    let firstAt: number | null = null;
    process.on(name, () => {
      // The first signal of each kind counts as the same request: the terminal sends SIGINT, and then our parent sends
      // SIGTERM.
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
    // Otherwise listening to the channel would keep a finished process alive.
    process.channel?.unref();
  } else if (process.connected === false) {
    // The parent ended while this process was loading: `connected` is false, and undefined where there never was a
    // channel.
    orphaned();
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

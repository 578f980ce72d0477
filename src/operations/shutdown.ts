import type { Logger } from "./log.ts";

/**
 * Aborts when the process is told to stop: SIGTERM, SIGINT, or the end of the process that started it with a channel.
 *
 * From then on the process has `timeoutMs` to finish what it has begun; after that it ends with status 1, and what it held
 * is taken over by others as after a crash.
 */
export function shutdownSignal({ log, timeoutMs }: { log: Logger; timeoutMs: number }): AbortSignal {
  const controller = new AbortController();
  const stop = (reason: string) => {
    if (controller.signal.aborted) return;
    log.info({ reason }, "Stopping: finishing what has begun");
    const deadline = setTimeout(() => {
      log.error({ timeoutMs }, "Not finished in time; leaving the rest to other processes");
      process.exit(1);
    }, timeoutMs);
    deadline.unref();
    // BullMQ's and ioredis's closing may wait for an answer on a connection that an outage has taken, for ever. Once nothing
    // else keeps the process alive, everything that was begun is done.
    process.once("beforeExit", () => process.exit(0));
    controller.abort(reason);
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  const orphaned = () => stop("the parent process has gone");
  if (process.connected) {
    process.on("disconnect", orphaned);
    // Listening to the channel must not keep a process alive that has finished.
    process.channel?.unref();
  } else if (process.connected === false) {
    orphaned(); // It went while we were loading; without a channel it would be undefined.
  }
  return controller.signal;
}

/** Settles when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

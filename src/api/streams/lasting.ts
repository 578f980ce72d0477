import type { Outlet } from "../../http/reply.ts";

/** Proxies between us and a caller close an idle connection; a sign of life keeps it open. */
const KEEP_ALIVE_MS = 15_000;

export interface LastingParts {
  /** How long the stream may last. */
  lifetimeMs: number;
  /** How long the reader may leave unread what was written. */
  unreadMs: number;
  /** The sign of life that is written at the beginning and during silence. */
  sign: () => string;
  /** The reader has gone, or the stream's time is over: nothing is waited for any more. */
  stop: () => void;
}

/** Where a stream tells its reader something. */
export interface StreamWriter {
  /** Whether the stream's time is over. */
  isOver(): boolean;
  /** "unread": the reader does not read, and was dropped, since what they leave unread stays in memory. */
  write(text: string): ReturnType<Outlet["drained"]>;
}

/** A stream that lasts: it ends when `tell` does, which is to end soon after `stop`. */
export function lasting(
  { lifetimeMs, unreadMs, sign, stop }: LastingParts,
  tell: (writer: StreamWriter) => Promise<void>,
): (outlet: Outlet) => Promise<void> {
  return async (outlet) => {
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      stop();
    }, lifetimeMs);
    const keepAlive = setInterval(() => outlet.write(sign()), KEEP_ALIVE_MS);
    outlet.onClose(stop);
    outlet.write(sign());
    try {
      await tell({
        isOver: () => isOver,
        async write(text) {
          const outcome = outlet.write(text) ? "drained" : await outlet.drained(unreadMs);
          if (outcome === "unread") outlet.drop();
          return outcome;
        },
      });
    } finally {
      clearInterval(keepAlive);
      clearTimeout(timer);
      stop();
    }
  };
}

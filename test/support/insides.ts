/**
 * A web process loads this module before its program (`--import`). On a port of its own the module tells for how long
 * the event loop was held since the last request. At `/memory` it tells how much memory is in use and no garbage (with
 * `--expose-gc`). The product has nothing of the kind.
 * A hold lies between two turns of the loop in which timers run. It is measured in processor time of the main thread:
 * when others have the processor the clock goes on, but nothing holds the loop. All work of a turn counts as one hold,
 * with a millisecond of other turns, so a hold is measured rather too long.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isMainThread } from "node:worker_threads";

/** Null: the process was not started with `--expose-gc`. */
const collect: (() => void) | null = globalThis.gc ?? null;

/** What happened since the last request. */
export interface Holds {
  /** The longest hold, in processor time. */
  heldMs: number;
  /** The longest time by the clock between two turns. */
  lateMs: number;
  /** All processor time of the main thread. */
  cpuMs: number;
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function serve(): void {
  let turn = { cpuMs: cpuMs(), at: performance.now() };
  let asked = turn.cpuMs;
  let worst = { heldMs: 0, lateMs: 0 };
  const look = () => {
    const now = { cpuMs: cpuMs(), at: performance.now() };
    worst = {
      heldMs: Math.max(worst.heldMs, now.cpuMs - turn.cpuMs),
      lateMs: Math.max(worst.lateMs, now.at - turn.at),
    };
    turn = now;
  };
  setInterval(look, 1).unref();
  const server = createServer(({ url }, response) => {
    if (url === "/memory" && collect) {
      collect();
      // The first collection leaves some memory to be freed beside the program. The second waits for that.
      collect();
      response.end(JSON.stringify(process.memoryUsage()));
      return;
    }
    look();
    response.end(JSON.stringify({ ...worst, cpuMs: turn.cpuMs - asked } satisfies Holds));
    worst = { heldMs: 0, lateMs: 0 };
    asked = turn.cpuMs;
  });
  // The test may send nothing for a long time.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1", () => {
    // No type can say that a server that listens to a port has one.
    const { port } = server.address() as AddressInfo;
    console.log(JSON.stringify({ level: 30, msg: "Insides", port }));
  });
  server.unref();
}

if (isMainThread) serve();

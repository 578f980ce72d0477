// A process that waits for its turn until it is told to stop, and then prints how this end is classified.

import pino from "pino";
import { openShutdown } from "../../src/operations/shutdown.ts";
import { classifyFailure } from "../../src/sync/problems/causes.ts";
import { Line } from "../../src/work/line.ts";

const log = pino();
const { signal } = openShutdown({ log, timeoutMs: 5_000 });
const full = { fits: () => false, take: () => {}, free: () => {} };
// Without this timer nothing would keep the process alive.
const alive = setInterval(() => {}, 1_000);
log.info("Waiting");
try {
  await new Line<null>(full).enter(null, signal);
} catch (error) {
  log.info(classifyFailure(error), "Ended");
}
clearInterval(alive);

// The requests to stop the launcher: Ctrl-C, TERM of a service manager, a closed terminal.
import { once } from "node:events";

// The terminal sends Ctrl-C to the launcher, and npm sends it once more at the same moment. Both count as one request.
const ECHO_MS = 1_000;

/**
 * `signal` aborts at the first request to stop; its reason is the name of the process signal. `again` resolves at the
 * second request, which means: do not wait any longer.
 * @typedef {{ signal: AbortSignal, again: Promise<void> }} Stopping
 */

/**
 * Takes over these signals, so that they no longer end the launcher by themselves.
 * @returns {Stopping}
 */
export function watchForStop() {
  let askedAt = 0;
  const first = new AbortController();
  let again = () => {};
  /** @type {Promise<void>} */
  const second = new Promise((resolve) => {
    again = resolve;
  });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(name, () => {
      if (!first.signal.aborted) {
        askedAt = Date.now();
        first.abort(name);
      } else if (Date.now() - askedAt > ECHO_MS) again();
    });
  }
  watchForOrphaning(() => first.abort("SIGTERM"));
  return { signal: first.signal, again: second };
}

/**
 * npm passes a TERM on to the shell that runs us, and the shell ends without telling us. A killed npm tells us nothing
 * either. In both cases `npm start` was meant to end, so the launcher ends when its parent has ended.
 * @param {() => void} orphaned
 */
function watchForOrphaning(orphaned) {
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event === undefined || parent === 1) return;
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    orphaned();
  }, 250); // The end of a parent sends no event.
}

/**
 * Resolves once asked to stop.
 * @param {Stopping} stopping
 */
export async function stopRequested({ signal }) {
  if (!signal.aborted) await once(signal, "abort");
}

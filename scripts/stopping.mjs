// How we are asked to stop: Ctrl-C, a service manager's TERM, a closed terminal.
import { once } from "node:events";

// Ctrl-C reaches us from the terminal and, at the same moment, once more from npm: that is one request, not two.
const ECHO_MS = 1_000;

/**
 * `signal` is raised by the first request to stop; its reason is the name of a process signal. `again` resolves at the
 * second request: an impatient person does not want to wait any longer.
 * @typedef {{ signal: AbortSignal, again: Promise<void> }} Stopping
 */

/**
 * From here on these signals no longer end the launcher by themselves.
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
 * either. Both mean that `npm start` was to end, so we end with our parent.
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

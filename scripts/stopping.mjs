// How we are asked to stop: Ctrl-C, a service manager's TERM, a closed terminal.
import { once } from "node:events";

// Ctrl-C reaches us from the terminal and, at the same moment, once more from npm: that is one request, not two.
const echoMs = 1_000;

/**
 * `{ signal, again }`: an AbortSignal raised by the first request to stop, and a promise for the second, by which an
 * impatient person asks not to wait any longer. From here on these signals no longer end the launcher by themselves.
 */
export function watchForStop() {
  let askedAt = 0;
  const first = new AbortController();
  const second = Promise.withResolvers?.() ?? withResolvers();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(name, () => {
      if (!first.signal.aborted) {
        askedAt = Date.now();
        first.abort(name);
      } else if (Date.now() - askedAt > echoMs) second.resolve();
    });
  }
  watchForOrphaning(() => first.abort("SIGTERM"));
  return { signal: first.signal, again: second.promise };
}

/**
 * npm passes a TERM on to the shell that runs us, which ends without telling us; and a killed npm tells nobody. Either
 * way whoever ran `npm start` has meant to end it, and what is left of it would be ours to be found running.
 */
function watchForOrphaning(orphaned) {
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event === undefined || parent === 1) return;
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    orphaned();
  }, 250); // No event tells of a parent's end.
}

/** Resolves once asked to stop. */
export async function stopRequested({ signal }) {
  if (!signal.aborted) await once(signal, "abort");
}

function withResolvers() {
  const resolvers = {};
  resolvers.promise = new Promise((resolve) => {
    resolvers.resolve = resolve;
  });
  return resolvers;
}

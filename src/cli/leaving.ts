import type { Within } from "./command.ts";

/** Aborts when whoever runs a long command stops it: a person by Ctrl-C, or the worker that runs it for one. */
export function leavingSignal(resources: AsyncDisposableStack, within: Within | undefined): AbortSignal {
  if (within) return within.signal;
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, leave);
    resources.defer(() => void process.off(name, leave));
  }
  return leaving.signal;
}

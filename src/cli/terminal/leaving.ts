import type { Within } from "./command.ts";

/** Aborts when a long command is stopped: by a person's Ctrl-C, or by the worker that runs it for an operator. */
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

/**
 * Aborts once one of them does, for its reason. For the signals of one request, since the listeners stay on those that never
 * abort. `AbortSignal.any` registers each signal to be cleaned up after, which costs time and memory (bench/NOTES.md, graphql).
 */
export function eitherOf(...signals: readonly AbortSignal[]): AbortSignal {
  const either = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) either.abort(signal.reason);
    else signal.addEventListener("abort", () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}

import type { Context } from "../../context.ts";
import type { Taken } from "../../inbox/inbox.ts";

const APPLIED_SECONDS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Counts deliveries that were settled just now, and how long after their receipt a read of the mirror shows them. */
export function meterSettled(
  { metrics, clock }: Pick<Context, "metrics" | "clock">,
  taken: readonly Pick<Taken, "id" | "event" | "receivedAt">[],
  outcomes: ReadonlyMap<string, string | Error>,
): void {
  const settled = metrics.counter("tain_deliveries_settled_total", "Deliveries, by what came of them.", [
    "event",
    "outcome",
  ]);
  const seconds = metrics.histogram(
    "tain_delivery_duration_seconds",
    "From a delivery's receipt until the mirror shows it.",
    [],
    APPLIED_SECONDS,
  );
  const now = clock.now().getTime();
  for (const { id, event, receivedAt } of taken) {
    const outcome = outcomes.get(id);
    if (outcome === undefined) continue;
    const isApplied = outcome === "applied";
    // Anybody who holds a hook's secret can invent the name of an event. Only known events are applied.
    settled.inc({ event: isApplied ? event : "any", outcome: outcome instanceof Error ? "invalid" : outcome });
    if (isApplied) seconds.observe((now - receivedAt.getTime()) / 1_000);
  }
}

/**
 * Adds the application to each delivery's own trace, with a link to the job that applied several deliveries together.
 */
export function traceSettled(
  { tracing }: Pick<Context, "tracing">,
  taken: readonly Pick<Taken, "id" | "traceparent">[],
  outcomes: ReadonlyMap<string, string | Error>,
  startedAt: Date,
): void {
  const job = tracing.here();
  for (const { id, traceparent } of taken) {
    const outcome = outcomes.get(id);
    if (traceparent === null || outcome === undefined) continue;
    tracing.past("apply delivery", traceparent, {
      startedAt,
      attributes: { "tain.outcome": outcome instanceof Error ? "invalid" : outcome },
      links: job === null ? [] : [job],
    });
  }
}

import type { Counter, Gauge } from "prom-client";
import type { Metrics } from "../../operations/metrics.ts";
import type { FeedForm } from "./envelope.ts";

/** Why a stream of the feed has ended. */
export type FeedEnd = "gone" | "lifetime" | "unread" | "rights" | "quota" | "pruned" | "lost" | "failed";

/** Counts the readers of the feed, and what they are told. */
export class FeedMeter {
  readonly #readers: Gauge<"form">;
  readonly #events: Counter<"form">;
  readonly #ended: Counter<"form" | "reason">;

  constructor(metrics: Metrics) {
    this.#readers = metrics.gauge("tain_feed_readers", "Open streams of the feed of events.", ["form"]);
    this.#events = metrics.counter("tain_feed_events_total", "Events that readers of the feed were told.", ["form"]);
    this.#ended = metrics.counter("tain_feed_ended_total", "Streams of the feed that have ended, by the reason.", [
      "form",
      "reason",
    ]);
  }

  begin(form: FeedForm): void {
    this.#readers.inc({ form });
  }

  told(form: FeedForm): void {
    this.#events.inc({ form });
  }

  end(form: FeedForm, reason: FeedEnd): void {
    this.#readers.dec({ form });
    this.#ended.inc({ form, reason });
  }
}

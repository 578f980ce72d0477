import type { Attributes } from "@opentelemetry/api";

/** A span's contents. They must hold no secret, no value of a query and no address with a token. */
export interface About {
  kind?: "server" | "client" | "consumer" | "internal";
  attributes?: Attributes;
  /** Related spans of other traces, each as a `traceparent`. */
  links?: readonly string[];
  /** Whether a thrown error counts as a failure of the span. By default each does. */
  isFailure?: (error: unknown) => boolean;
}

/** A span that is under way. */
export interface TracedSpan {
  setAttributes(attributes: Attributes): void;
  /** Replaces the name that the span began with. */
  updateName(name: string): void;
  /** Marks the span as failed when no error was thrown. */
  failed(type: string): void;
}

/** Records traces. A caller's request or a job begins a trace. All other spans are recorded only within a trace. */
export interface Tracing {
  /** Whether traces are recorded at all. */
  readonly isOn: boolean;
  /** Begins a trace, or goes on with the one that `traceparent` names. */
  begin<T>(name: string, traceparent: string | null | undefined, about: About, run: Run<T>): Promise<T>;
  /**
   * Continues the trace that `traceparent` names, with a link to the current span. Without a `traceparent`, does the
   * same as `within`.
   */
  resume<T>(name: string, traceparent: string | null | undefined, about: About, run: Run<T>): Promise<T>;
  /** Runs a child span of the current span. */
  within<T>(name: string, about: () => About, run: Run<T>): Promise<T>;
  /** Records a span that has ended already. */
  past(name: string, traceparent: string, about: About & { startedAt: Date }): void;
  /**
   * The current span as a `traceparent`, so that another process can continue its trace. Null: nothing is recorded
   * here.
   */
  here(): string | null;
  /** Returns a function that runs later calls within the current span. Null: traces are off. */
  snapshot(): (<T>(run: () => T) => T) | null;
}

export type Run<T> = (span: TracedSpan) => Promise<T>;

export const SILENT: TracedSpan = { setAttributes: () => {}, updateName: () => {}, failed: () => {} };

export const UNTRACED: Tracing = {
  isOn: false,
  begin: (_name, _traceparent, _about, run) => run(SILENT),
  resume: (_name, _traceparent, _about, run) => run(SILENT),
  within: (_name, _about, run) => run(SILENT),
  past: () => {},
  here: () => null,
  snapshot: () => null,
};

/** The header that lets the receiver of our request continue the trace. No header if nothing is recorded. */
export function traceHeaders(tracing: Tracing): { traceparent?: string } {
  const traceparent = tracing.here();
  return traceparent === null ? {} : { traceparent };
}

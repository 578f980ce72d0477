import type { Attributes } from "@opentelemetry/api";

/** What a span tells. Nothing here is a secret, a value of a query or an address that could hold a token. */
export interface About {
  kind?: "server" | "client" | "consumer" | "internal";
  attributes?: Attributes;
  /** Spans of other traces that have to do with it, as `traceparent` names them. */
  links?: readonly string[];
  /** Whether what was thrown is one. Default: it is. */
  isFailure?: (error: unknown) => boolean;
}

/** A span that is under way. */
export interface TracedSpan {
  setAttributes(attributes: Attributes): void;
  /** Instead of the name that it began with. */
  updateName(name: string): void;
  /** Says that it failed, without an error that was thrown. */
  failed(type: string): void;
}

/**
 * Tells an OpenTelemetry collector what happened in which order. A trace begins with a caller's request or a job; all
 * else is part of one that is under way, and is not told outside of it.
 */
export interface Tracing {
  /** Whether anything is told at all. */
  readonly isOn: boolean;
  /** Begins a trace, or goes on with the one that `traceparent` names. */
  begin<T>(name: string, traceparent: string | null | undefined, about: About, run: Run<T>): Promise<T>;
  /** Goes on with the trace that `traceparent` names, with a link to what is under way. Without it, as `within`. */
  resume<T>(name: string, traceparent: string | null | undefined, about: About, run: Run<T>): Promise<T>;
  /** Part of what is under way. */
  within<T>(name: string, about: () => About, run: Run<T>): Promise<T>;
  /** Tells what is over already. */
  past(name: string, traceparent: string, about: About & { startedAt: Date }): void;
  /** Names what is under way, for those who go on with it; null: it is not told. */
  here(): string | null;
  /** Runs what belongs to what is under way now, from wherever it is called later. Null: nothing is told at all. */
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

/** The headers of a request of ours that let its receiver go on with the trace. None where nothing is traced. */
export function traceHeaders(tracing: Tracing): { traceparent?: string } {
  const traceparent = tracing.here();
  return traceparent === null ? {} : { traceparent };
}

import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, Context, Link, Span } from "@opentelemetry/api";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Config } from "../config.ts";
import { VERSION } from "../version.ts";
import type { Logger } from "./log.ts";
import { Outage } from "./outage.ts";

/** What a span tells. Nothing here is a secret, a value of a query or an address that could hold a token. */
interface About {
  kind?: "server" | "client" | "consumer" | "internal";
  attributes?: Attributes;
  /** Spans of other traces that have to do with it, as `traceparent` names them. */
  links?: readonly string[];
  /** Whether what was thrown is one. Default: it is. */
  isFailure?: (error: unknown) => boolean;
}

/** A span that is under way. */
export interface Telling {
  tell(attributes: Attributes): void;
  /** Instead of the name that it began with. */
  name(name: string): void;
  /** Says that it failed, without an error that was thrown. */
  failed(type: string): void;
}

/**
 * Tells an OpenTelemetry collector what happened in which order. A trace begins with a caller's request or a job; all else is part
 * of one that is under way, and is not told outside of it.
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

type Run<T> = (telling: Telling) => Promise<T>;

const SILENT: Telling = { tell: () => {}, name: () => {}, failed: () => {} };

export const UNTRACED: Tracing = {
  isOn: false,
  begin: (_name, _traceparent, _about, run) => run(SILENT),
  resume: (_name, _traceparent, _about, run) => run(SILENT),
  within: (_name, _about, run) => run(SILENT),
  past: () => {},
  here: () => null,
  snapshot: () => null,
};

/** What a request of ours carries, so that whom it reaches goes on with the trace. Nothing where nothing is told. */
export function traceHeaders(tracing: Tracing): { traceparent?: string } {
  const traceparent = tracing.here();
  return traceparent === null ? {} : { traceparent };
}

/** How long a process that stops waits for a collector that does not answer. */
const FLUSH_MS = 2_000;

/**
 * Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set: nothing is loaded then. The SDK itself reads the other variables that
 * OpenTelemetry names. `resources` sends what is left when the process stops.
 */
export async function openTracing(
  { config, log }: { config: Pick<Config, "tracesUrl">; log: Logger },
  resources: AsyncDisposableStack,
  { name }: { name: string },
): Promise<Tracing> {
  if (config.tracesUrl === null) return UNTRACED;
  const [api, core, { detectResources, defaultResource, envDetector, resourceFromAttributes }, sdk, exporters] =
    await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/core"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace-base"),
      import("@opentelemetry/exporter-trace-otlp-proto"),
    ]);
  const own = { "service.name": "tain", "service.version": VERSION, "tain.process": name };
  const provider = new sdk.BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(own))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new sdk.BatchSpanProcessor(watched(new exporters.OTLPTraceExporter(), log))],
  });
  resources.defer(async () => {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FLUSH_MS);
    // Whatever could not be sent was logged where it was tried.
    await Promise.race([provider.shutdown().catch(() => {}), late]);
    clearTimeout(timer);
  });

  const tracer = provider.getTracer("tain", VERSION);
  const { ROOT_CONTEXT, SpanStatusCode, trace } = api;
  const propagator = new core.W3CTraceContextPropagator();
  const underWay = new AsyncLocalStorage<{ span: Span; context: Context }>();
  const { INTERNAL: internal, SERVER: server, CLIENT: client, CONSUMER: consumer } = api.SpanKind;
  const kinds = { internal, server, client, consumer };
  const named = (traceparent: string) => propagator.extract(ROOT_CONTEXT, { traceparent }, api.defaultTextMapGetter);
  const linksTo = (traceparents: readonly string[] = []): Link[] =>
    traceparents.flatMap((one) => trace.getSpanContext(named(one)) ?? []).map((context) => ({ context }));
  const here = () => {
    const present = underWay.getStore();
    if (!present?.span.isRecording()) return null;
    const carrier: { traceparent?: string } = {};
    propagator.inject(present.context, carrier, api.defaultTextMapSetter);
    return carrier.traceparent ?? null;
  };
  const told = async <T>(
    name: string,
    parent: Context,
    { kind, attributes, links, isFailure }: About,
    run: Run<T>,
  ): Promise<T> => {
    const options = { kind: kinds[kind ?? "internal"], attributes: attributes ?? {}, links: linksTo(links) };
    const span = tracer.startSpan(name, options, parent);
    const failed = (type: string) => {
      span.setAttribute("error.type", type);
      span.setStatus({ code: SpanStatusCode.ERROR });
    };
    const telling: Telling = {
      tell: (more) => void span.setAttributes(more),
      name: (other) => void span.updateName(other),
      failed,
    };
    try {
      return await underWay.run({ span, context: trace.setSpan(parent, span) }, () => run(telling));
    } catch (error) {
      // Its message may quote what must not be told.
      if (isFailure?.(error) ?? true) failed(error instanceof Error ? error.name : "unknown");
      throw error;
    } finally {
      span.end();
    }
  };
  const within: Tracing["within"] = (name, about, run) => {
    const present = underWay.getStore();
    // Also what was begun in a span's course and outlasts it, such as a loop, is not told: its trace would never end.
    if (!present?.span.isRecording()) return run(SILENT);
    return told(name, present.context, about(), run);
  };
  return {
    isOn: true,
    begin: (name, traceparent, about, run) => told(name, traceparent ? named(traceparent) : ROOT_CONTEXT, about, run),
    resume: (name, traceparent, about, run) => {
      if (!traceparent) return within(name, () => about, run);
      const present = here();
      const links = [...(about.links ?? []), ...(present === null ? [] : [present])];
      return told(name, named(traceparent), { ...about, links }, run);
    },
    within,
    past: (name, traceparent, { startedAt, kind, attributes, links }) => {
      const options = {
        startTime: startedAt,
        kind: kinds[kind ?? "internal"],
        attributes: attributes ?? {},
        links: linksTo(links),
      };
      tracer.startSpan(name, options, named(traceparent)).end();
    },
    here,
    snapshot: () => AsyncLocalStorage.snapshot(),
  };
}

/** Logs once that a collector takes nothing, and once that it does again. What it did not take is gone. */
function watched(exporter: SpanExporter, log: Logger): SpanExporter {
  const outage = new Outage(log, "warn", {
    begins: "Traces cannot be sent: OTEL_EXPORTER_OTLP_ENDPOINT takes none",
    ends: "Traces are sent again",
  });
  return {
    export: (spans: ReadableSpan[], done) =>
      exporter.export(spans, (result) => {
        if (result.code === 0) outage.met();
        else outage.missed(result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => await exporter.forceFlush?.(),
  };
}

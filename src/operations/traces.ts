import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { VERSION } from "../version.ts";
import { within } from "../waits/within.ts";
import type { Logger } from "./log.ts";
import { Outage } from "./outage.ts";
import { type About, type Run, SILENT, type TracedSpan, type Tracing } from "./tracing.ts";

/** How long a process that stops waits for a collector that does not answer. */
const FLUSH_MS = 2_000;

const SPAN_KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
};

const propagator = new W3CTraceContextPropagator();

/** Sends spans to an OpenTelemetry collector. This module is loaded only if one is configured. */
export class Traces implements Tracing, AsyncDisposable {
  readonly isOn = true;
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;
  readonly #underWay = new AsyncLocalStorage<{ span: Span; context: Context }>();

  /** @param process the process's name, sent as the attribute `tain.process` */
  constructor(log: Logger, process: string) {
    const own = { "service.name": "tain", "service.version": VERSION, "tain.process": process };
    this.#provider = new BasicTracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes(own))
        .merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(watched(new OTLPTraceExporter(), log))],
    });
    this.#tracer = this.#provider.getTracer("tain", VERSION);
  }

  /** Sends the remaining spans. */
  async [Symbol.asyncDispose](): Promise<void> {
    // The exporter has logged its own failures.
    const sent = this.#provider.shutdown().catch(() => {});
    await within(FLUSH_MS, sent, () => {});
  }

  async begin<T>(name: string, traceparent: string | null | undefined, about: About, run: Run<T>): Promise<T> {
    return await this.#told(name, traceparent ? traceContext(traceparent) : ROOT_CONTEXT, about, run);
  }

  async resume<T>(name: string, traceparent: string | null | undefined, about: About, run: Run<T>): Promise<T> {
    if (!traceparent) return await this.within(name, () => about, run);
    const present = this.here();
    const links = [...(about.links ?? []), ...(present === null ? [] : [present])];
    return await this.#told(name, traceContext(traceparent), { ...about, links }, run);
  }

  async within<T>(name: string, about: () => About, run: Run<T>): Promise<T> {
    const present = this.#present();
    return present ? await this.#told(name, present.context, about(), run) : await run(SILENT);
  }

  past(name: string, traceparent: string, { startedAt, ...about }: About & { startedAt: Date }): void {
    this.#tracer.startSpan(name, { ...spanOptions(about), startTime: startedAt }, traceContext(traceparent)).end();
  }

  here(): string | null {
    const present = this.#present();
    if (!present) return null;
    const carrier: { traceparent?: string } = {};
    propagator.inject(present.context, carrier, defaultTextMapSetter);
    return carrier.traceparent ?? null;
  }

  snapshot(): <T>(run: () => T) => T {
    return AsyncLocalStorage.snapshot();
  }

  /**
   * A span that has ended does not count. Work that outlasts its span, such as a loop, belongs to no trace, since that
   * trace would never end.
   */
  #present(): { span: Span; context: Context } | null {
    const present = this.#underWay.getStore();
    return present?.span.isRecording() ? present : null;
  }

  async #told<T>(name: string, parent: Context, about: About, run: Run<T>): Promise<T> {
    const span = this.#tracer.startSpan(name, spanOptions(about), parent);
    const failed = (type: string) => {
      span.setAttribute("error.type", type);
      span.setStatus({ code: SpanStatusCode.ERROR });
    };
    const traced: TracedSpan = {
      setAttributes: (more) => void span.setAttributes(more),
      updateName: (other) => void span.updateName(other),
      failed,
    };
    try {
      return await this.#underWay.run({ span, context: trace.setSpan(parent, span) }, () => run(traced));
    } catch (error) {
      // The error's message is left out, because it may quote a secret.
      if (about.isFailure?.(error) ?? true) failed(error instanceof Error ? error.name : "unknown");
      throw error;
    } finally {
      span.end();
    }
  }
}

function traceContext(traceparent: string): Context {
  return propagator.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
}

function spanOptions({ kind = "internal", attributes = {}, links = [] }: About): SpanOptions {
  return { kind: SPAN_KINDS[kind], attributes, links: links.flatMap(linkTo) };
}

function linkTo(traceparent: string): Link[] {
  const context = trace.getSpanContext(traceContext(traceparent));
  return context ? [{ context }] : [];
}

/** Logs once when the collector fails, and once when it works again. Spans that it did not take are lost. */
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

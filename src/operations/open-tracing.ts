import type { Config } from "../config.ts";
import type { Logger } from "./log.ts";
import { type Tracing, UNTRACED } from "./tracing.ts";

/**
 * Tracing is off, and its packages are not loaded, unless OTEL_EXPORTER_OTLP_ENDPOINT is set. The OpenTelemetry SDK
 * reads its other variables itself. When the process stops, `resources` sends the remaining spans.
 */
export async function openTracing(
  { config, log }: { config: Pick<Config, "tracesUrl">; log: Logger },
  resources: AsyncDisposableStack,
  { name }: { name: string },
): Promise<Tracing> {
  if (config.tracesUrl === null) return UNTRACED;
  const { Traces } = await import("./traces.ts");
  return resources.use(new Traces(log, name));
}

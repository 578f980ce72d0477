import type { Config } from "../config.ts";
import type { Logger } from "./log.ts";
import { type Tracing, UNTRACED } from "./tracing.ts";

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
  const { Traces } = await import("./traces.ts");
  return resources.use(new Traces(log, name));
}

import type { Context } from "../context.ts";
import { reasonOf } from "../failure.ts";
import { json } from "../http/reply.ts";
import { type Route, Router } from "../http/router.ts";
import { HttpServer } from "../http/server.ts";
import { isOperator } from "./operator.ts";

type MetricsContext = Pick<Context, "config" | "metrics" | "log" | "clock">;

/** `/-/metrics`, for requests with the operator's token. @param otherwise answers all other requests */
export function metricsRoute({ config, metrics }: MetricsContext, otherwise: Route["handle"]): Route {
  return {
    method: "GET",
    path: "/-/metrics",
    handle: async (exchange, at) => {
      if (!isOperator(exchange, config.operatorToken)) return await otherwise(exchange, at);
      const headers = { "Content-Type": metrics.contentType, "Cache-Control": "no-store" };
      return { status: 200, headers, body: await metrics.text(), isEncodable: true };
    },
  };
}

/**
 * If METRICS_PORT is set, serves `/-/live` and `/-/metrics` for a process without other HTTP routes, until `resources`
 * close.
 */
export async function serveMetrics(ctx: MetricsContext, resources: AsyncDisposableStack): Promise<void> {
  const { config, log } = ctx;
  if (config.metricsPort === null) return;
  const unknown = () => json(404, { message: "Here are /-/live and /-/metrics. The latter takes OPERATOR_TOKEN." });
  const server = new HttpServer({
    routes: new Router([
      { method: "GET", path: "/-/live", handle: () => json(200, { live: true }) },
      metricsRoute(ctx, unknown),
    ]),
    otherwise: unknown,
    failure: (error) => {
      log.error({ reason: reasonOf(error) }, "The figures could not be collected");
      return json(500, { message: "The figures could not be told; the log says why" });
    },
    trustedProxies: [],
    log,
    clock: ctx.clock,
  });
  const address = await server.listen({ host: config.host, port: config.metricsPort });
  resources.defer(() => server.close());
  log.info({ address }, "Metrics are served");
}

import { type ApiLimits, openApi } from "./api/routes.ts";
import { parseConfig } from "./config.ts";
import { type Context, openContext } from "./context.ts";
import { watchFleet } from "./health/fleet.ts";
import { forecast } from "./health/forecast.ts";
import { HealthWatch } from "./health/health.ts";
import { plainTextWarnings } from "./health/plain-text.ts";
import { health } from "./health/routes.ts";
import { BodyBudget } from "./http/body.ts";
import { Router } from "./http/router.ts";
import { HttpServer } from "./http/server.ts";
import { ActivityWriter } from "./operations/activity-table.ts";
import { runProcess } from "./operations/entry.ts";
import { openHeartbeat } from "./operations/heartbeat.ts";
import { guardSchema } from "./operations/schema-guard.ts";
import { aborted, openShutdown } from "./operations/shutdown.ts";
import { operatorPage } from "./operator/routes.ts";
import { openReceiver } from "./receiver/routes.ts";
import { quotaReport } from "./upstream/quota/report.ts";

/** The web process's server. */
export interface Web {
  listen: HttpServer["listen"];
  /** Finishes what is under way. */
  close(): Promise<void>;
}

/** Receiver, API, the operator's page and probes, behind one routing table. It listens to nothing yet. */
export function openWeb(ctx: Context, limits: ApiLimits = {}): Web {
  const api = openApi(ctx, limits);
  // An edge passes requests that it does not answer on to the centre: webhooks and the operator's page, too.
  const receiver = ctx.config.edgeOf === null ? openReceiver(ctx) : null;
  const { otherwise, failure, adapt } = api;
  const watch = new HealthWatch(ctx);
  const life = receiver && openHeartbeat(ctx, "web");
  if (receiver) {
    watchFleet(ctx, () => quotaReport(ctx));
    watch.begin();
  }
  const routes = new Router([
    ...(receiver ? [...receiver.routes, ...operatorPage(ctx, { ...api, watch })] : []),
    ...health(ctx, { quota: () => quotaReport(ctx), forecast, replicas: api.replicas, otherwise, watch }),
    ...api.routes,
  ]);
  const { log, config, tracing, clock } = ctx;
  const { trustedProxies, webhookBodiesBytes: maxBytes, webhookBodyTimeoutMs: patienceMs } = config;
  const bodies = new BodyBudget({ maxBytes, patienceMs });
  const server = new HttpServer({ routes, otherwise, failure, adapt, trustedProxies, bodies, tracing, log, clock });
  return {
    listen: (at) => server.listen(at),
    async close() {
      const closed = server.close();
      await api.stop();
      await closed;
      await Promise.all([receiver?.close(), api.close(), watch.close(), life?.close()]);
    },
  };
}

/** Serves at HOST and PORT until `resources` close. Warns of settings that are not safe. */
export async function serveWeb(ctx: Context, resources: AsyncDisposableStack): Promise<void> {
  const { config, log } = ctx;
  for (const warning of [...config.warnings, ...plainTextWarnings(config)]) log.warn(warning);
  if (config.encryptionKeys === null && config.edgeOf === null)
    log.warn(
      "ENCRYPTION_KEY is not set, so WEBHOOK_SECRET also encrypts targets' secrets: set it to a secret of its own, and then run `tain targets reseal`",
    );
  const web = openWeb(ctx);
  resources.defer(() => web.close());
  const address = await web.listen({ host: config.host, port: config.port });
  log.info({ address }, "Listening");
}

if (import.meta.main) await runProcess(runWeb);

async function runWeb(): Promise<void> {
  const config = parseConfig(process.env);
  await using resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "web", isTraced: true });
  const shutdown = openShutdown({ log: ctx.log, timeoutMs: config.shutdownMs });
  await guardSchema(ctx, shutdown, resources);
  ctx.metrics.observeProcess();
  // An edge writes nothing.
  if (config.edgeOf === null) resources.use(new ActivityWriter(ctx)).begin();
  await serveWeb(ctx, resources);
  await aborted(shutdown.signal);
}

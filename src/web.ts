import Fastify, { type FastifyInstance } from "fastify";
import { ApiFault, faultBody } from "./api/dialect/fault.ts";
import { registerApi } from "./api/routes.ts";
import { parseConfig } from "./config.ts";
import { type Context, openContext } from "./context.ts";
import { forecast } from "./health/forecast.ts";
import { health } from "./health/routes.ts";
import { runProcess } from "./operations/entry.ts";
import { aborted, shutdownSignal } from "./operations/shutdown.ts";
import { receiver } from "./receiver/routes.ts";
import { quotaReport } from "./upstream/quota/report.ts";

/** A request must have arrived whole within this time; 25 MB take it on a slow line. */
const REQUEST_TIMEOUT_MS = 30_000;

/** The HTTP server: receiver, API, probes. It listens to nothing yet. */
export function buildWeb(ctx: Context): FastifyInstance {
  const app = Fastify({
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy: ctx.config.trustedProxies.length > 0 ? [...ctx.config.trustedProxies] : false,
    routerOptions: { maxParamLength: 1_000 },
    // A path that no router can read, such as one with a broken percent-encoding, in the dialect's shape of an error.
    frameworkErrors: (error, _request, reply) => {
      const body = faultBody(new ApiFault(400, `Bad Request: ${error.message}`), "https://docs.github.com/rest");
      reply.hijack();
      reply.raw.writeHead(400, { "Content-Type": "application/json; charset=utf-8" }).end(body);
    },
  });
  closeConnectionsWhenStopping(app);
  app.register(receiver(ctx));
  app.register(health(ctx, { quota: () => quotaReport(ctx), forecast }));
  app.register((scope) => registerApi(scope, ctx));
  return app;
}

/** A connection kept alive after the last answer would hold the server open until its caller lets go of it. */
function closeConnectionsWhenStopping(app: FastifyInstance): void {
  let isStopping = false;
  app.addHook("preClose", async () => {
    isStopping = true;
  });
  app.addHook("onSend", async (_request, reply) => {
    if (isStopping) reply.header("connection", "close");
  });
}

if (import.meta.main) await runProcess(run);

async function run(): Promise<void> {
  const config = parseConfig(process.env);
  await using resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "web" });
  const stopping = shutdownSignal({ log: ctx.log, timeoutMs: config.shutdownMs });
  const app = buildWeb(ctx);
  // No new requests; those in flight are answered.
  resources.defer(() => app.close());
  const address = await app.listen({ host: config.host, port: config.port });
  ctx.log.info({ address }, "Listening");
  await aborted(stopping);
}

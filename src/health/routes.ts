import type { ReplicaState } from "../../db/replica.ts";
import type { Context } from "../context.ts";
import { levelOf, reasonOf } from "../failure.ts";
import { json, type Reply } from "../http/reply.ts";
import type { Handler, Route } from "../http/router.ts";
import { VERSION } from "../version.ts";
import type { Health, HealthWatch } from "./health.ts";
import { metricsRoute } from "./metrics.ts";
import { isOperator } from "./operator.ts";
import { findLacking, type Lacking } from "./readiness.ts";
import { loadStatus } from "./status.ts";

type Watched = Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log" | "metrics">;

interface HealthParts<Quota> {
  /** The quota of each credential. */
  quota: () => Promise<Quota[]>;
  /** Computes the forecast from the quota. */
  forecast?: Parameters<typeof loadStatus<Quota>>[2];
  /** The states of the replicas that callers' reads go to. */
  replicas: () => ReplicaState[];
  /** Answers a request for an unknown path. */
  otherwise: Handler;
  watch: Pick<HealthWatch, "health" | "refusal">;
}

/** The probes, the status and the metrics. */
export function health<Quota>(
  ctx: Watched,
  { quota, forecast, replicas, otherwise, watch }: HealthParts<Quota>,
): Route[] {
  const tell = teller(ctx);
  const status: Route = {
    method: "GET",
    path: "/-/status",
    handle: async (exchange, at) => {
      // The status names private repositories, so anybody but the operator gets a 404.
      if (!isOperator(exchange, ctx.config.operatorToken)) return await otherwise(exchange, at);
      const health = await watch.health();
      try {
        return told(200, { ...(await loadStatus(ctx, quota, forecast, replicas)), health });
      } catch (error) {
        return told(503, {
          version: VERSION,
          upstream: ctx.config.upstreamUrl,
          health,
          message: whyNoStatus(ctx, error, health),
        });
      }
    },
  };
  return [
    { method: "GET", path: "/-/live", handle: () => told(200, { live: true }) },
    {
      method: "GET",
      path: "/-/ready",
      handle: async (exchange) => {
        const found = await findLacking(ctx, watch.refusal);
        tell(found);
        // Only the operator is shown the reasons, because they name hosts, ports and roles.
        const isTold = isOperator(exchange, ctx.config.operatorToken);
        const leftOut = isTold ? replicas().filter((one) => one.leftOut !== null) : [];
        // The process is ready without its replicas, because the primary answers in their place.
        if (found.length === 0 && leftOut.length > 0)
          return told(200, { ready: true, replicasLeftOut: leftOut.map(leftOutText) });
        if (found.length === 0) return told(200, { ready: true });
        return told(503, { ready: false, missing: found.map(isTold ? lackingText : ({ what }) => what) });
      },
    },
    // An edge does not serve the status: it passes the request on to the centre.
    ...(ctx.config.edgeOf === null ? [status] : []),
    metricsRoute(ctx, otherwise),
  ];
}

/** In words. @throws the failure that no trouble explains */
function whyNoStatus({ log }: Pick<Watched, "log">, error: unknown, { state, line }: Health): string {
  if (state !== "problem") throw error;
  log[levelOf(error, "warn")]({ reason: reasonOf(error) }, "The status cannot be told");
  return `The status cannot be told. ${line}`;
}

/** Logs why the process is not ready, whenever the reasons have changed. */
function teller({ log }: Pick<Watched, "log">): (found: readonly Lacking[]) => void {
  let last = "";
  return (found) => {
    const missing = found.map(lackingText);
    if (missing.join() !== last && missing.length > 0) log.warn({ missing }, "Not ready");
    last = missing.join();
  };
}

function leftOutText({ name, leftOut }: ReplicaState): string {
  return `${name}: ${leftOut}`;
}

function lackingText({ what, reason }: Lacking): string {
  return `${what}: ${reason}`;
}

function told(status: number, value: object): Reply {
  return json(status, value, { "Cache-Control": "no-store" });
}

import type { Context } from "../context.ts";
import { json, type Reply } from "../http/reply.ts";
import type { Handler, Route } from "../http/router.ts";
import { isOperator } from "./operator.ts";
import { missingParts } from "./readiness.ts";
import { loadStatus } from "./status.ts";

type Watched = Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">;

interface HealthParts<Quota> {
  /** What upstream still lets each credential do. */
  quota: () => Promise<Quota[]>;
  /** What follows from that. */
  forecast?: Parameters<typeof loadStatus<Quota>>[2];
  /** Answers for a path that there is not. */
  otherwise: Handler;
}

/** The probes and the status. */
export function health<Quota>(ctx: Watched, { quota, forecast, otherwise }: HealthParts<Quota>): Route[] {
  return [
    { method: "GET", path: "/-/live", handle: () => told(200, { live: true }) },
    {
      method: "GET",
      path: "/-/ready",
      handle: async () => {
        const missing = await missingParts(ctx);
        return missing.length === 0 ? told(200, { ready: true }) : told(503, { ready: false, missing });
      },
    },
    {
      method: "GET",
      path: "/-/status",
      handle: async (exchange, params) => {
        // The page names private repositories, so to anyone but the operator it does not exist.
        if (!isOperator(exchange, ctx.config.operatorToken)) return await otherwise(exchange, params);
        return told(200, await loadStatus(ctx, quota, forecast));
      },
    },
  ];
}

function told(status: number, value: object): Reply {
  return json(status, value, { "Cache-Control": "no-store" });
}

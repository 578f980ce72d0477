import type { FastifyInstance, FastifyReply } from "fastify";
import { isPostgresOutage } from "../../db/outage.ts";
import { StandingsReader } from "../mirror/unchanged/standings.ts";
import { goInFront, type Listener } from "../operations/front.ts";
import type { ApiContext } from "./call.ts";
import { Callers } from "./callers/caller.ts";
import { CallerQuota } from "./callers/quota.ts";
import { compressAnswers } from "./compression.ts";
import { registerDescription } from "./description/routes.ts";
import { ApiFault, faultBody } from "./dialect/fault.ts";
import { storeOutage } from "./dialect/outage.ts";
import { agentMissing, hasAgent, jsonType, type Outgoing, send } from "./dialect/reply.ts";
import { newRequestId } from "./dialect/request-id.ts";
import { DirectReads } from "./direct.ts";
import { openGraphql } from "./graphql/run/endpoint.ts";
import { ChangeStreams } from "./graphql/subscribe/change-streams.ts";
import { takesLines } from "./head.ts";
import { openPages } from "./page.ts";
import { openRest } from "./rest/endpoint.ts";
import { restOperations } from "./rest/operations.ts";
import { Shortcut } from "./shortcut.ts";

const DOCS = "https://docs.github.com/rest";

/** GitHub takes bodies of 65,536 characters; GraphQL variables may hold several. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

const METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"];

/**
 * Serves the dialect at `/` and at `/api/v3`, GraphQL at `/graphql` and `/api/graphql`: every path that no other route of
 * the app has taken. Closing the app gives callers' leased quota back. GitHub gives up on a query after 10 s; so do we.
 */
export async function registerApi(
  app: FastifyInstance,
  ctx: ApiContext,
  { graphqlTimeoutMs = 10_000 } = {},
): Promise<void> {
  const callers = new Callers(ctx);
  const quota = new CallerQuota(ctx);
  const changes = new ChangeStreams(ctx);
  const pages = openPages(ctx.config.pageCacheBytes);
  const standings = new StandingsReader(ctx.config);
  const graphql = openGraphql({ ctx, callers, quota, timeoutMs: graphqlTimeoutMs, changes, standings });
  const shortcut = new Shortcut(ctx, { callers, quota, pages, standings });
  const operations = restOperations();
  const rest = openRest({ ctx, callers, quota, pages, standings, shortcut, operations });
  const direct = new DirectReads(ctx, { rest, failed: failure });
  if (takesLines) {
    goInFront(app, (request, response, way) => {
      const pass: Listener = (again, its) => direct.take(again, its, way);
      shortcut.take(request, response, { ...way, pass });
    });
  }

  await app.register(async (api) => {
    // A stream would hold the server open until its caller goes.
    api.addHook("preClose", async () => changes[Symbol.asyncDispose]());
    api.addHook("onClose", async () => {
      await quota.close();
      await callers.close();
      await standings[Symbol.asyncDispose]();
    });
    await compressAnswers(api);
    // Bodies stay as they were sent: they are passed on, or read by the operation that knows what they are.
    api.removeAllContentTypeParsers();
    api.addContentTypeParser("*", { parseAs: "string", bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
      done(null, body),
    );
    api.setErrorHandler((error, request, reply) => sendAll(reply, failure(error, request.url)));
    registerDescription(api, ctx, { operations, newRequestId });
    api.route({
      method: METHODS,
      url: "/*",
      handler: async (request, reply) => {
        const path = request.url.split("?", 1)[0] ?? "/";
        const isGraphql = path === "/graphql" || path === "/api/graphql";
        if (!isGraphql || request.method !== "POST")
          return sendAll(reply, await rest.answer(request, rest.find(request.method, request.url)));
        const requestId = newRequestId();
        return hasAgent(request.headers) ? graphql(request, reply, requestId) : sendAll(reply, agentMissing(requestId));
      },
    });
  });

  /** What is wrong on our own side, as an answer. */
  function failure(error: unknown, url: string): Outgoing {
    const requestId = newRequestId();
    const answer = (fault: ApiFault): Outgoing => ({
      status: fault.status,
      body: faultBody(fault, DOCS),
      headers: { "Content-Type": jsonType, ...fault.headers },
      requestId,
    });
    if (isPostgresOutage(error)) {
      ctx.log.error({ err: error, requestId, path: url.split("?")[0] }, "The database cannot be reached");
      return answer(storeOutage(error));
    }
    const status = (error as { statusCode?: number }).statusCode ?? 500;
    if (status >= 500) ctx.log.error({ err: error, requestId, path: url.split("?")[0] }, "A request failed");
    const message = status >= 500 ? "Server Error" : status === 413 ? "Request body is too large" : "Bad Request";
    return answer(new ApiFault(status, message));
  }
}

function sendAll(reply: FastifyReply, { status, body, headers, requestId }: Outgoing): FastifyReply {
  return send(reply, status, body, headers, requestId);
}

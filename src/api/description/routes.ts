import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Config } from "../../config.ts";
import type { ApiContext } from "../call.ts";
import { apiAddress } from "../dialect/addresses.ts";
import { ApiFault, faultBody } from "../dialect/fault.ts";
import { cacheHeaders, isUnchanged, jsonType, send } from "../dialect/reply.ts";
import { apiSchema } from "../graphql/schema.ts";
import type { Router } from "../router.ts";
import { describeApi } from "./document.ts";
import { descriptionPage, pagePolicy } from "./page.ts";
import { escaped } from "./prose.ts";
import { readPublished } from "./published.ts";

/** Stand for the caller's address in what is made once. No such hosts can exist. */
const [ADDRESS, HOST] = ["https://address-of-the-caller.invalid", "host-of-the-caller.invalid"];

/** Serves what the API is: `/-/openapi.json` for programs, `/-/docs` for people. To anybody, and for nothing. */
export function registerDescription(
  app: FastifyInstance,
  { config }: Pick<ApiContext, "config">,
  { operations, newRequestId }: { operations: Router; newRequestId: () => string },
): void {
  // Made when first asked for: nobody else waits for it.
  let made: { json: string; page: string } | null = null;
  const whole = () => {
    made ??= write(operations, config);
    return made;
  };

  const at = (url: string, written: Parameters<typeof show>[2]) =>
    app.route({ method: ["GET", "HEAD"], url, handler: async (request, reply) => show(request, reply, written) });
  at("/-/openapi.json", (address) => ({
    body: whole().json.replaceAll(ADDRESS, () => JSON.stringify(address).slice(1, -1)),
    headers: { "Content-Type": jsonType },
  }));
  at("/-/docs", (address) => ({
    body: whole()
      .page.replaceAll(ADDRESS, () => escaped(address))
      .replaceAll(HOST, () => escaped(new URL(address).host)),
    headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": pagePolicy },
  }));

  function show(
    { protocol, host, ip, headers: asked }: FastifyRequest,
    reply: FastifyReply,
    written: (address: string) => { body: string; headers: Record<string, string> },
  ): FastifyReply {
    const requestId = newRequestId();
    try {
      const { body, headers } = written(apiAddress(config, { protocol, host, isEnterprise: false }));
      const all = { ...headers, ...cacheHeaders({ status: 200, body }, { kind: "anonymous", address: ip }, asked) };
      return isUnchanged(all, asked) ? send(reply, 304, null, all, requestId) : send(reply, 200, body, all, requestId);
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      const headers = { "Content-Type": jsonType, ...error.headers };
      return send(reply, error.status, faultBody(error, "https://docs.github.com/rest"), headers, requestId);
    }
  }
}

function write(operations: Router, config: Config): { json: string; page: string } {
  const description = describeApi(operations.routes, readPublished(), { ...config, api: ADDRESS });
  const page = descriptionPage(description, apiSchema(), { ...config, api: ADDRESS, host: HOST });
  return { json: JSON.stringify(description), page };
}

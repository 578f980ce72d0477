import type { FastifyReply, FastifyRequest } from "fastify";
import type { ApiContext } from "../call.ts";
import type { CallerQuota } from "../quota.ts";
import type { ApiTokens } from "../tokens.ts";
export function openGraphql(_parts: { ctx: ApiContext; tokens: ApiTokens; quota: CallerQuota }) {
  return async (_request: FastifyRequest, reply: FastifyReply, _requestId: string): Promise<FastifyReply> => reply.code(501).send();
}

import type { LRUCache } from "lru-cache";
import { numberOf, objectOf } from "../../json.ts";
import type { Stores } from "../../stores.ts";
import { graphqlPath } from "../protocol/address.ts";
import { doubtsIn, SETTLED } from "../protocol/doubts.ts";
import { graphqlAnswer, isMutation, judgeGraphql, parseGraphql } from "../protocol/graphql.ts";
import type { GraphqlAnswer, GraphqlOptions } from "../protocol/upstream.ts";
import { type AskingContext, seersOf } from "./asking.ts";
import { askOnce, askRepeatedly } from "./attempts.ts";
import type { UpstreamRequest } from "./exchange.ts";

interface GraphqlContext extends AskingContext, Pick<Stores, "config"> {
  /** The last cost of each document, which is the next lease for it. */
  costs: LRUCache<string, number>;
}

/** Sends a GraphQL document. A query may be repeated, a mutation is sent once. */
export async function askGraphql(
  ctx: GraphqlContext,
  document: string,
  variables: object,
  { priority, repository, signal, onAnswer, isBelieved = priority === "refresh" }: GraphqlOptions,
): Promise<GraphqlAnswer> {
  const mutates = isMutation(document);
  const cost = ctx.costs.get(document) ?? 1;
  const ask: UpstreamRequest = {
    ...(await seersOf(ctx, repository)),
    request: {
      method: "POST",
      path: graphqlPath(ctx.config.upstreamUrl),
      isAbsolute: true,
      headers: { "content-type": "application/json", ...(isBelieved && { prefer: SETTLED }) },
      body: JSON.stringify({ query: document, variables }),
    },
    demand: { bucket: "graphql", api: "graphql", cost, isWrite: mutates, priority, signal },
    judge: judgeGraphql,
  };
  const { received, seenAt, refusal } = await (mutates ? askOnce(ctx, ask) : askRepeatedly(ctx, ask));
  onAnswer?.(received);
  if (refusal) throw refusal;
  const body = parseGraphql(received.text);
  const charged = numberOf(objectOf(body?.data?.rateLimit).cost);
  if (charged !== null) ctx.costs.set(document, charged);
  return { ...graphqlAnswer(received, body, { seenAt, mutates }), doubts: doubtsIn(received.headers) };
}

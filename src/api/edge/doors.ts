import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import { isRead } from "../../http/reply.ts";
import type { Match, RestDoor } from "../call/operation.ts";
import { graphqlText } from "../dialect/protocol.ts";
import type { Graphql } from "../graphql/handle.ts";
import type { Edge } from "./edge.ts";

/** The ways by which requests come in at an edge. */
export function edgeDoors(edge: Edge, { rest, graphql }: { rest: RestDoor; graphql: Graphql }) {
  const toCentre = (exchange: Exchange) => edge.answer(exchange, null);
  return {
    async query(exchange: Exchange): Promise<Reply> {
      using bodies = new DisposableStack();
      const text = await graphqlText(exchange, { until: bodies });
      // A query that is taken for a mutation by mistake only waits for the replica.
      const mayWrite = /\bmutation\b/.test(text);
      return await edge.answer(exchange, {
        answer: () => graphql.handle(exchange, text),
        body: Buffer.from(text),
        mayWrite,
      });
    },
    feed: toCentre,
    position: toCentre,
    async rest(exchange: Exchange, matched: (() => Match) | null): Promise<Reply> {
      const { method } = exchange;
      if (!matched || !(isRead(method) || method === "OPTIONS")) return await toCentre(exchange);
      return await edge.answer(exchange, {
        answer: () => rest(exchange, matched),
        body: null,
        mayWrite: false,
      });
    },
  };
}

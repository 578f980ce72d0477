import { LRUCache } from "lru-cache";
import type { Stores } from "../../stores.ts";
import { graphqlPath } from "./address.ts";
import type { Asking } from "./asking.ts";
import type { Attempts } from "./attempts.ts";
import type { Ask } from "./exchange.ts";
import { graphqlAnswer, isMutation, judgeGraphql, parseGraphql } from "./graphql.ts";
import { numberOf, objectOf } from "./json.ts";
import type { GraphqlAnswer, GraphqlOptions } from "./upstream.ts";

/** Sends GraphQL documents: queries may be repeated, mutations are sent once. */
export class GraphqlAsking {
  readonly #upstreamUrl: string;
  readonly #asking: Asking;
  readonly #attempts: Attempts;
  /** What each document cost last time, as the lease for its next time. */
  readonly #costs = new LRUCache<string, number>({ max: 100 });

  constructor(
    { config: { upstreamUrl } }: Pick<Stores, "config">,
    { asking, attempts }: { asking: Asking; attempts: Attempts },
  ) {
    this.#upstreamUrl = upstreamUrl;
    this.#asking = asking;
    this.#attempts = attempts;
  }

  async ask<T>(
    document: string,
    variables: object,
    { priority, repository, signal }: GraphqlOptions,
  ): Promise<GraphqlAnswer<T>> {
    const mutates = isMutation(document);
    const cost = this.#costs.get(document) ?? 1;
    const ask: Ask = {
      ...(await this.#asking.seeing(repository)),
      request: {
        method: "POST",
        path: graphqlPath(this.#upstreamUrl),
        isAbsolute: true,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query: document, variables }),
      },
      demand: { bucket: "graphql", api: "graphql", cost, isWrite: mutates, priority, signal },
      judge: judgeGraphql,
    };
    const { received, seenAt, refusal } = await (mutates ? this.#attempts.once(ask) : this.#attempts.repeatedly(ask));
    if (refusal) throw refusal;
    const body = parseGraphql(received.text);
    const charged = numberOf(objectOf(body?.data?.rateLimit).cost);
    if (charged !== null) this.#costs.set(document, charged);
    return graphqlAnswer<T>(received, body, { seenAt, mutates });
  }
}

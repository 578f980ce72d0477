import { Quota, type QuotaLimits } from "../../src/simulator/quota/quota.ts";
import { Graphql, type GraphqlAnswer } from "../../src/simulator/service/graphql.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { roleOf } from "../../src/simulator/world/access.ts";
import { Apps } from "../../src/simulator/world/apps.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { type Token, type TokenInput, Tokens } from "../../src/simulator/world/tokens.ts";
import { World } from "../../src/simulator/world/world.ts";

export interface Reply {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes.
  readonly data?: any;
  readonly errors?: readonly {
    readonly type?: string;
    readonly message: string;
    readonly path?: readonly unknown[];
    readonly extensions?: { readonly code?: string };
  }[];
}

export const NOON = Date.UTC(2026, 9, 1, 12);

/** A world with a frozen clock and its GraphQL endpoint, which tests ask without a network. */
export function openGraphql(
  options: {
    readonly world?: World;
    readonly clock?: SettableClock;
    readonly limits?: Partial<QuotaLimits>;
    readonly token?: Partial<TokenInput>;
  } = {},
) {
  const clock = options.clock ?? new SettableClock(NOON);
  const world = options.world ?? new World({ seed: 7, clock });
  const tokens = new Tokens(world, new Apps(world));
  const quota = new Quota(clock, options.limits ? { limits: options.limits } : {});
  const graphql = new Graphql(world, quota);
  const token = tokens.create({ login: "mona", ...options.token });
  const answer = (query: string, variables?: object, as: Token | "none" | "bad" = token): Promise<GraphqlAnswer> => {
    const role = typeof as === "string" ? null : as;
    const view = openView({
      world,
      apiUrl: "http://127.0.0.1:1",
      htmlUrl: "https://github.com",
      roleOf: (repository) => roleOf(world, role, repository),
    });
    return graphql.answer({ token: as, view, body: JSON.stringify({ query, variables }) });
  };
  /** Sends the query, expects 200, and answers the body. */
  const ask = async (query: string, variables?: object, as?: Token): Promise<Reply> => {
    const { status, body } = await answer(query, variables, as);
    if (status !== 200) throw new Error(`Status ${status}: ${JSON.stringify(body)}`);
    return body as Reply;
  };
  return { clock, world, tokens, quota, graphql, token, answer, ask };
}

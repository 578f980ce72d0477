import type { Context } from "../../src/context.ts";
import type { Upstream } from "../../src/upstream/client/upstream.ts";

/** The same context, which asks upstream in these ways of its own. */
export function withUpstream(ctx: Context, own: Partial<Pick<Upstream, "get" | "graphql">>): Context {
  const { upstream } = ctx;
  const asked = new Proxy(upstream, {
    get: (_, name: keyof Upstream) => own[name as "get"] ?? upstream[name].bind(upstream),
  });
  return { ...ctx, upstream: asked };
}

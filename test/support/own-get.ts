import type { Context } from "../../src/context.ts";
import type { Upstream } from "../../src/upstream/client.ts";

/** The same context, which reads from upstream by `get`. */
export function withGet(ctx: Context, get: Upstream["get"]): Context {
  const { upstream } = ctx;
  const own = new Proxy(upstream, {
    get: (_, name: keyof Upstream) => (name === "get" ? get : upstream[name].bind(upstream)),
  });
  return { ...ctx, upstream: own };
}

import type { Context } from "../../src/context.ts";
import type { Upstream } from "../../src/upstream/protocol/upstream.ts";

/** The same client with other methods in the place of some. */
export function changed(upstream: Upstream, otherwise: Partial<Upstream>): Upstream {
  return new Proxy(upstream, {
    get: (target, name) => Reflect.get(otherwise, name) ?? Reflect.get(target, name).bind(target),
  });
}

/** The same context with other methods of its client of upstream. */
export function withUpstream(ctx: Context, otherwise: Partial<Upstream>): Context {
  return { ...ctx, upstream: changed(ctx.upstream, otherwise) };
}

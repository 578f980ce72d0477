import type { Upstream } from "../../src/upstream/client/upstream.ts";

/** The same client, but for what it does otherwise. */
export function changed(upstream: Upstream, otherwise: Partial<Upstream>): Upstream {
  return new Proxy(upstream, {
    get: (target, name) => Reflect.get(otherwise, name) ?? Reflect.get(target, name).bind(target),
  });
}

import { AtCentreError } from "../../operations/at-centre.ts";
import type { Upstream } from "../protocol/upstream.ts";

/** Upstream in an edge, which must not spend the quota of the mirror's credentials: only the centre does. */
export function upstreamOfEdge(): Upstream {
  const refuse = async () => {
    throw new AtCentreError("An edge asks upstream nothing with the mirror's credentials");
  };
  return {
    get: refuse,
    open: refuse,
    graphql: refuse,
    write: refuse,
    groups: refuse,
    tryAgain: refuse,
    credentialsChanged() {},
    async close() {},
  };
}

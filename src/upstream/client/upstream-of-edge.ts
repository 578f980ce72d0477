import { AtCentreError } from "../../operations/at-centre.ts";
import type { Upstream } from "./upstream.ts";

/** Upstream as an edge has it: all that asks with the mirror's credentials, and spends their quota, is for the centre. */
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

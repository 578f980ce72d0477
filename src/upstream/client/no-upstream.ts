import { ElsewhereError } from "../../operations/elsewhere.ts";
import type { Upstream } from "../protocol/upstream.ts";

/** Upstream in a process that must not spend the quota of the mirror's credentials. */
export function noUpstream(): Upstream {
  const refuse = async () => {
    throw new ElsewhereError("This process asks upstream nothing with the mirror's credentials");
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

import type { Call } from "../call.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";
import { isServiceRoute } from "./service-routes.ts";

/**
 * The answer to a request that is neither served nor forwarded. Clients read a 404 as "there is none": no member, no
 * branch, no check. So 404 is only for routes that the service does not have either. The status depends on the path's
 * form alone, so it reveals nothing. Pure.
 */
export function notServed({ method, path, ctx }: Pick<Call, "method" | "path" | "ctx">): ApiFault {
  const what = `this mirror does not serve ${method} on this route`;
  if (!isServiceRoute(method, path)) return new ApiFault(404, `Not Found: ${what}`, { documentationUrl: REST_DOCS });
  // The same with PASS_THROUGH=all, for paths that the mirror's own credential may not read.
  const help = ctx.config.passThrough
    ? "It asks the service for those who show a token of the service's own."
    : "Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.";
  const message = `Forbidden: ${what}, and so cannot say what is there. ${help}`;
  return new ApiFault(403, message, { documentationUrl: REST_DOCS });
}

import type { Context } from "../../context.ts";
import { isLacking, learnLack } from "../../mirror/store/upstream-lacks.ts";
import {
  GraphqlTooHeavyError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/protocol/errors.ts";
import { isLackInSchema } from "../../upstream/protocol/wording.ts";
import { PullsNotShownError } from "../problems/errors.ts";

/** The name of what a server lacks that is old, or has GraphQL switched off. */
const PULL_DETAILS = "details of pull requests by GraphQL";

/**
 * Reads details of pull requests by GraphQL, or by REST if GraphQL cannot give them. GraphQL may be forbidden or off, a
 * single pull request too heavy, the server older than a field, or its answer unreadable, twice. A field that the server
 * lacks is tried again once a day, for all repositories together.
 * @param options.evenIfOdd false: what cannot be read is asked for again later, since REST would cost a request for each
 */
export async function graphqlOrRest<Value>(
  ctx: Pick<Context, "db" | "clock" | "log">,
  byGraphql: () => Promise<Value>,
  byRest: () => Promise<Value>,
  { evenIfOdd = true }: { evenIfOdd?: boolean } = {},
): Promise<Value> {
  if (await isLacking(ctx.db, PULL_DETAILS, ctx.clock.now())) return await byRest();
  try {
    return await (evenIfOdd ? twiceIfAmiss(byGraphql) : byGraphql());
  } catch (error) {
    const isLack = error instanceof UpstreamRefusedError && saysLack(error);
    const isRefused = error instanceof UpstreamRefusedError || error instanceof PullsNotShownError;
    if (!isRefused && !(error instanceof GraphqlTooHeavyError) && !(evenIfOdd && isAmiss(error))) throw error;
    ctx.log.warn({ reason: error.message }, "Details of pull requests are read by REST");
    if (isLack) await learnLack(ctx.db, PULL_DETAILS, { reason: error.message, now: ctx.clock.now() });
  }
  return await byRest();
}

/** What fails once in this way may be a matter of the moment, and REST costs far more. */
async function twiceIfAmiss<Value>(byGraphql: () => Promise<Value>): Promise<Value> {
  try {
    return await byGraphql();
  } catch (error) {
    if (!isAmiss(error)) throw error;
    return await byGraphql();
  }
}

/** The answer has no shape that it may have. Whatever an outage of upstream's looks like passes, and is waited for. */
function isAmiss(error: unknown): error is UpstreamUnavailableError {
  return error instanceof UpstreamUnavailableError && error.outage === "unreadable";
}

/** There is no such address, or no such field: the server is the same for every repository. */
function saysLack({ status, message }: UpstreamRefusedError): boolean {
  return status === 404 || status === 410 || isLackInSchema(message);
}

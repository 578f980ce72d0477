import { decoded } from "../../http/router.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import { type Answer, type Call, isRead } from "../call.ts";
import type { Caller, ForwardOwn, User } from "../callers/caller.ts";
import { beginTrace } from "../trace/trace.ts";
import { answerOf, askedBy, forward, opened } from "./forwarding.ts";
import { readFault } from "./upstream-for-callers.ts";

/**
 * Asks upstream, with the caller's own token, for a resource that this mirror does not serve. The caller's validators
 * go along, so an unchanged answer costs them nothing. Nothing is kept here. Null: the caller showed no token of
 * upstream's.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be passed on
 */
export async function passThrough(call: Call): Promise<Answer | null> {
  const { caller } = call;
  if (caller.kind !== "user" || caller.by.of !== "upstream" || !isOfDialect(call.path)) return null;
  const path = `${call.path}${call.query.size > 0 ? `?${call.query}` : ""}`;
  const send = isRead(call.method) ? caller.by.forward : await recorded({ ...call, caller }, caller.by.forward);
  return await forward(askedBy(call, path), send);
}

/** A write that is sent on leaves a record of what became of it. */
async function recorded(call: Call & { caller: User }, send: ForwardOwn): Promise<ForwardOwn> {
  const { method, path } = call;
  const trace = await beginTrace(call, { method, route: null, path, repositoryId: null });
  return async (request) => {
    try {
      const opened = await send(request);
      trace.heard(opened);
      return opened;
    } catch (error) {
      if (error instanceof UpstreamUnavailableError && error.outage === "unreachable") trace.unsent();
      throw error;
    } finally {
      await trace.end();
    }
  };
}

type OfUpstream = Extract<User["by"], { of: "upstream" }>;

/**
 * What upstream shows a caller by their own token of a resource that is mirrored, or why it does not. Nothing is kept.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be passed on
 */
export async function shownByUpstream(
  call: Call,
  by: OfUpstream,
  path: string,
): Promise<{ shown: Answer } | { notFresh: string; status: number }> {
  const { ctx } = call;
  const confirmedAt = ctx.clock.now();
  const asked = askedBy(call, path);
  const received = await opened(asked, by.forward, (error) =>
    readFault(error, { now: ctx.clock.now(), isLate: false, whose: "your" }),
  );
  const { status } = received;
  const isShown = (status >= 200 && status <= 299) || status === 304;
  if (isShown) {
    const answer = answerOf(asked, received);
    // Of the mirror's own routes callers are shown what is left here: some stop at the first 0 that they see.
    const headers = Object.entries(answer.headers ?? {}).filter(([name]) => !name.startsWith("X-RateLimit-"));
    return { shown: { ...answer, headers: Object.fromEntries(headers), confirmedAt } };
  }
  received.body.destroy();
  const isMoved = status >= 300 && status <= 399;
  return { notFresh: isMoved ? "upstream says that it has moved" : `upstream answers ${status}`, status };
}

/** Whether upstream can be asked in the caller's own name. */
export function mayBePassed(caller: Caller): boolean {
  return caller.kind === "user" && caller.by.of === "upstream";
}

/** Below `/-/` another Tain has its operator's pages, open to requests from its own machine. */
function isOfDialect(path: string): boolean {
  return !/^[/\\]*-(\/|$)/.test(decoded(path) ?? "/-/");
}

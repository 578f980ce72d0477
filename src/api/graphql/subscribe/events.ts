import type { IncomingHttpHeaders } from "node:http";
import {
  createSourceEventStream,
  type ExecutionResult,
  executeSubscriptionEvent,
  GraphQLError,
  type GraphQLSchema,
  validateSubscriptionArgs,
} from "graphql";
import type { Outlet } from "../../../http/reply.ts";
import { lasting } from "../../streams/lasting.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Query } from "../documents/query.ts";
import { executePlan } from "../run/execution.ts";
import type { Plans } from "../run/plans.ts";
import { type Result, resultOf } from "../run/result.ts";

export const EVENT_STREAM = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache",
  "X-Accel-Buffering": "no",
};

export function acceptsEventStream(headers: IncomingHttpHeaders): boolean {
  return /\btext\/event-stream\b/.test(headers.accept ?? "");
}

export function eventStreamOnly(): GraphQLError {
  return new GraphQLError("Subscriptions are served as server-sent events: send `Accept: text/event-stream`.");
}

/** A subscription that has begun: its events, and what shows each of them. The call loads anew what an event shows. */
export interface Events {
  told: AsyncIterator<unknown>;
  show: (event: unknown, call: GraphqlCall) => Promise<Result>;
}

/** The events of a subscription, or why there are none. @param timeoutMs how long an event may take to be shown */
export async function openEvents(
  { schema, plans, timeoutMs }: { schema: GraphQLSchema; plans: Plans; timeoutMs: number },
  { document, asked, operation, variables }: Query,
  call: GraphqlCall,
): Promise<ExecutionResult | Events> {
  const prepared = validateSubscriptionArgs({
    schema,
    document,
    variableValues: asked.variables,
    operationName: asked.operationName ?? null,
    contextValue: call,
    hideSuggestions: true,
  });
  if (!("schema" in prepared)) return { errors: prepared };
  const source = await createSourceEventStream(prepared);
  if (!(Symbol.asyncIterator in source)) return source;
  const plan = plans.of(document.definitions, operation, variables);
  const show: Events["show"] = async (root, context) => {
    const signal = AbortSignal.timeout(timeoutMs);
    if (plan) return executePlan({ plan, variables, context, root, signal, pace: call.ctx.mirror.pace });
    return resultOf(await executeSubscriptionEvent({ ...prepared, rootValue: root, contextValue: context }));
  };
  return { told: source[Symbol.asyncIterator](), show };
}

export interface StreamParts {
  /** The call that shows the next event, or why no more are shown. */
  next: () => Promise<GraphqlCall | GraphQLError>;
  format: (result: Result) => string;
  /** How long the stream may last, and the error that ends it then. */
  lifetime: { ms: number; over: GraphQLError };
  /** How long the reader may leave written events unread. */
  unreadMs: number;
  /** Hears why we have ended the stream, if its caller has not. */
  onEnd: (why: string) => void;
  onFailure: (error: unknown) => void;
}

/**
 * Writes results as server-sent events, in the distinct connections mode of the protocol "GraphQL over SSE": `next` for
 * each result, `complete` at the end. The stream ends when the caller goes, when an event cannot be shown, or when its
 * time is over. A reader who does not read is dropped, since unread events stay in memory.
 */
export function eventStream(
  { told, show }: Events,
  { next, format, lifetime, unreadMs, onEnd, onFailure }: StreamParts,
): (outlet: Outlet) => Promise<void> {
  const stop = () => void told.return?.();
  return lasting({ lifetimeMs: lifetime.ms, unreadMs, sign: () => ":\n\n", stop }, async (line) => {
    const write = (result: Result) => line.write(`event: next\ndata: ${format(result)}\n\n`);
    /** Shows the next events. Answers the error that ends the stream, if its reader is still to be told. */
    const tell = async (): Promise<GraphQLError | null> => {
      for (let event = await told.next(); !event.done; event = await told.next()) {
        const call = await next();
        if (call instanceof GraphQLError) return call;
        const result = await show(event.value, call);
        const outcome = await write(result);
        if (outcome === "unread") onEnd("Its reader does not read");
        if (outcome !== "drained") return null;
        if (result.data === undefined || result.data === "null") {
          onEnd(result.errors?.[0]?.message ?? "An event could not be shown");
          return null;
        }
      }
      return line.isOver() ? lifetime.over : null;
    };
    try {
      const why = await tell();
      if (why) {
        onEnd(why.message);
        await write({ errors: [why] });
      }
    } catch (error) {
      onFailure(error);
    }
    await line.write("event: complete\ndata:\n\n");
  });
}

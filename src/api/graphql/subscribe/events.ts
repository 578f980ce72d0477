import type { IncomingHttpHeaders } from "node:http";
import {
  createSourceEventStream,
  type ExecutionResult,
  executeSubscriptionEvent,
  GraphQLError,
  type GraphQLSchema,
  mapSourceToResponseEvent,
  validateSubscriptionArgs,
} from "graphql";
import type { Outlet } from "../../../http/reply.ts";
import type { GraphqlCall } from "../call.ts";
import type { Query } from "../parse.ts";

/** What lies between us and a caller closes an idle connection; a comment in the stream keeps it open. */
const KEEP_ALIVE_MS = 15_000;

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

/** The events of a subscription, or why there are none. What an event shows is loaded anew for each. */
export async function openEvents(
  schema: GraphQLSchema,
  { document, asked }: Query,
  newCall: () => GraphqlCall,
): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
  const prepared = validateSubscriptionArgs({
    schema,
    document,
    variableValues: asked.variables,
    operationName: asked.operationName ?? null,
    contextValue: newCall(),
    hideSuggestions: true,
  });
  if (!("schema" in prepared)) return { errors: prepared };
  const source = await createSourceEventStream(prepared);
  if (!(Symbol.asyncIterator in source)) return source;
  return mapSourceToResponseEvent(prepared, source, (event) =>
    executeSubscriptionEvent({ ...event, operation: prepared.operation, contextValue: newCall() }),
  );
}

/**
 * Writes results as server-sent events, as the protocol "GraphQL over SSE" has them in its mode of distinct connections:
 * `next` for each, `complete` at the end. It ends when the caller goes.
 */
export function eventStream(
  results: AsyncIterable<ExecutionResult>,
  { format, onFailure }: { format: (result: ExecutionResult) => string; onFailure: (error: unknown) => void },
): (outlet: Outlet) => Promise<void> {
  return async (outlet) => {
    const keepAlive = setInterval(() => outlet.write(":\n\n"), KEEP_ALIVE_MS);
    const iterator = results[Symbol.asyncIterator]();
    outlet.onClose(() => void iterator.return?.());
    outlet.write(":\n\n");
    try {
      for (let next = await iterator.next(); !next.done; next = await iterator.next())
        outlet.write(`event: next\ndata: ${format(next.value)}\n\n`);
    } catch (error) {
      onFailure(error);
    } finally {
      clearInterval(keepAlive);
    }
    outlet.write("event: complete\ndata:\n\n");
  };
}

import type { FastifyReply, FastifyRequest } from "fastify";
import type { ExecutionResult } from "graphql";
import type { Change } from "../../../mirror/store/announcement.ts";
import type { GraphqlCall, Node } from "../call.ts";
import { typedError } from "../errors.ts";
import { nodeOf } from "../resolve/lookups.ts";

/** An idle connection is closed by what lies between; a comment in the stream keeps it open. */
const KEEP_ALIVE_MS = 15_000;

/** What starts the stream of a field of `Subscription`, and what each of its events shows. */
interface SubscriptionField {
  subscribe: (root: unknown, args: { repositoryId: string }, call: GraphqlCall) => Promise<AsyncIterable<Change>>;
  resolve: (change: Change, args: { repositoryId: string }, call: GraphqlCall) => unknown;
}

function changed(kind: Change["kind"], key: "issue" | "pullRequest"): SubscriptionField {
  return {
    subscribe: async (_root, { repositoryId }, call) =>
      call.changes.open({ repositoryId: (await repositoryNode(call, repositoryId)).repositoryId, kind }),
    resolve: async ({ number }, { repositoryId }, call) => {
      // Again at each event: who has lost sight of the repository since hears no more of it.
      const repository = await repositoryNode(call, repositoryId);
      const node = await call.numbered(kind === "issue" ? "Issue" : "PullRequest", repository.repositoryId, number);
      return { number, [key]: node };
    },
  };
}

async function repositoryNode(call: GraphqlCall, globalId: string): Promise<Node> {
  const node = await nodeOf(call, globalId);
  if (node.kind === "Repository") return node;
  throw typedError("NOT_FOUND", `Could not resolve to Repository node with the global id of '${globalId}'.`);
}

export const subscriptionFields: Record<string, SubscriptionField> = {
  issueChanged: changed("issue", "issue"),
  pullRequestChanged: changed("pull_request", "pullRequest"),
};

export function acceptsEventStream({ headers }: FastifyRequest): boolean {
  return /\btext\/event-stream\b/.test(headers.accept ?? "");
}

/**
 * Writes results as server-sent events, as the protocol "GraphQL over SSE" has them in its mode of distinct connections:
 * `next` for each, `complete` at the end. It ends when the caller goes.
 */
export async function streamResults(
  reply: FastifyReply,
  results: AsyncIterable<ExecutionResult>,
  {
    headers,
    format,
    onFailure,
  }: {
    headers: Record<string, string>;
    format: (result: ExecutionResult) => string;
    onFailure: (error: unknown) => void;
  },
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    ...headers,
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
  });
  const keepAlive = setInterval(() => raw.write(":\n\n"), KEEP_ALIVE_MS);
  const iterator = results[Symbol.asyncIterator]();
  raw.on("close", () => void iterator.return?.());
  raw.write(":\n\n");
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next())
      raw.write(`event: next\ndata: ${format(next.value)}\n\n`);
    raw.end("event: complete\ndata:\n\n");
  } catch (error) {
    onFailure(error);
    raw.end("event: complete\ndata:\n\n");
  } finally {
    clearInterval(keepAlive);
  }
}

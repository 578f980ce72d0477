import type { Change } from "../../../mirror/store/announcement.ts";
import type { GraphqlCall, Node } from "../call.ts";
import { typedError } from "../errors.ts";
import { nodeOf } from "../resolve/lookups.ts";

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

import type { Change, ChangesOf } from "../../../events/log-reads.ts";
import { sees } from "../../../mirror/read/repositories.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { nodeOf } from "../resolve/lookups.ts";
import { typedError } from "../run/errors.ts";

/** A field of `Subscription`: what starts its stream, and what each event shows. */
interface SubscriptionField {
  subscribe: (root: unknown, args: { repositoryId: string }, call: GraphqlCall) => Promise<AsyncIterable<Change>>;
  resolve: (change: Change, args: { repositoryId: string }, call: GraphqlCall) => unknown;
}

function changesField(kind: ChangesOf["kind"], key: "issue" | "pullRequest"): SubscriptionField {
  const right = kind === "issue" ? "issues" : "pulls";
  return {
    subscribe: async (_root, { repositoryId }, call) => {
      const { repositoryId: id } = await repositoryNode(call, repositoryId);
      const seesPrivate = sees(call.access, { id, isPrivate: true }, right);
      const wanted = { repositoryId: id, kind, seesPrivate };
      return call.withRight({ repositoryId: id, right }, () => call.changes.open(wanted));
    },
    resolve: async ({ number }, { repositoryId }, call) => {
      // Rights are checked at each event: a caller who has lost access to the repository hears no more of it.
      const { repositoryId: id } = await repositoryNode(call, repositoryId);
      const node = await call.withRight({ repositoryId: id, right }, () =>
        call.numbered(kind === "issue" ? "Issue" : "PullRequest", id, number),
      );
      return { number, [key]: node };
    },
  };
}

async function repositoryNode(call: GraphqlCall, globalId: string): Promise<Node> {
  const node = await nodeOf(call, globalId);
  if (node.kind === "Repository") return node;
  throw typedError("NOT_FOUND", `Could not resolve to Repository node with the global id of '${globalId}'.`);
}

/** The fields of `Subscription`. */
export const subscriptionFields: Readonly<Record<string, SubscriptionField>> = {
  issueChanged: changesField("issue", "issue"),
  pullRequestChanged: changesField("pull_request", "pullRequest"),
};

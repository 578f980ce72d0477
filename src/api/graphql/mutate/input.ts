/** The inputs of mutations, and the mirrored resources that their ids stand for. */
import { type Fields, numberOf } from "../../../json.ts";
import { issuePlace } from "../../writes/issue-writes.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { rightFor } from "../resolve/fields.ts";
import { nodeOf } from "../resolve/lookups.ts";
import { typedError } from "../run/errors.ts";
import { writerOf } from "./perform.ts";

/** What every input may carry. The payload returns it. */
export interface Input {
  clientMutationId?: string | null;
}

/** The changes of an issue or a pull request. A field that is absent or null stays; but null clears the milestone. */
export interface Sets extends Input {
  title?: string | null;
  body?: string | null;
  assigneeIds?: string[] | null;
  labelIds?: string[] | null;
  milestoneId?: string | null;
  state?: "OPEN" | "CLOSED" | null;
  projectIds?: string[] | null;
}

/** The resources that an input's ids stand for. Undefined: the input names none. */
export interface Resolved {
  labels?: Node[];
  assignees?: Node[];
  milestone?: Node | null;
}

/**
 * The named resources. @throws GraphQLError for ids that are not in the mirror, and for projects, which we never write
 */
export async function resolved(
  call: GraphqlCall,
  { labelIds, assigneeIds, milestoneId, projectIds }: Sets,
): Promise<Resolved> {
  if (projectIds && projectIds.length > 0)
    throw typedError("UNPROCESSABLE", "`projectIds` is not written through this mirror: leave it out, or empty.");
  const [labels, assignees, milestone] = await Promise.all([
    labelIds && Promise.all(labelIds.map((id) => nodeOfKind(call, id, "Label"))),
    assigneeIds && Promise.all(assigneeIds.map((id) => nodeOfKind(call, id, "User", "Bot"))),
    milestoneId && nodeOfKind(call, milestoneId, "Milestone"),
  ]);
  return {
    ...(labels ? { labels } : {}),
    ...(assignees ? { assignees } : {}),
    ...(milestoneId === undefined ? {} : { milestone: milestone || null }),
  };
}

/** The same changes in REST's words. */
export function setsOf({ title, body, state }: Sets, { labels, assignees, milestone }: Resolved): Fields {
  return {
    ...(title == null ? {} : { title }),
    ...(body == null ? {} : { body }),
    ...(state == null ? {} : { state: state.toLowerCase() }),
    ...(labels ? { labels: labels.map(({ rest }) => String(rest.name)) } : {}),
    ...(assignees ? { assignees: assignees.map(({ rest }) => String(rest.login)) } : {}),
    ...(milestone === undefined ? {} : { milestone: numberOf(milestone?.rest.number) }),
  };
}

export async function writePlace(call: GraphqlCall, subject: Node) {
  const writer = writerOf(call, await repositoryOfNode(call, subject), await rightFor(call, subject));
  const place = await issuePlace(writer.ctx, writer.repository, Number(subject.rest.number));
  return { writer, place };
}
export type Placed = Awaited<ReturnType<typeof writePlace>>;

export async function nodeOfKind(call: GraphqlCall, id: string, ...kinds: Node["kind"][]): Promise<Node> {
  const node = await nodeOf(call, id);
  if (kinds.includes(node.kind)) return node;
  throw typedError("NOT_FOUND", `Could not resolve to ${kinds.join(" or ")} node with the global id of '${id}'.`);
}

export async function repositoryOfNode(call: GraphqlCall, { repositoryId }: Node): Promise<Node> {
  const repository = await call.repository(repositoryId);
  if (!repository) throw typedError("NOT_FOUND", "Could not resolve to a Repository.");
  return repository;
}

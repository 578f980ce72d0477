import type { MirrorPart } from "../../../config/parts.ts";
import { type Json, objectOf } from "../../../json.ts";
import type { CodeRight, Right } from "../../../kinds/contract/rights.ts";
import { associationFor } from "../../../mirror/documents/documents.ts";
import { hasWhereSeen } from "../../../mirror/read/repositories.ts";
import { accessLevelOf, notAccessible, readsCode } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { helpBeyond, notGiven, typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";

/** What the fields of several types share. */

export type Resolver = (node: Node, args: never, call: GraphqlCall, info: FieldInfo) => unknown;
export type TypeResolvers = Record<string, Resolver>;

export const rest =
  (key: string): Resolver =>
  (node) =>
    node.rest[key] ?? null;
export const upper =
  (key: string): Resolver =>
  (node) =>
    enumValue(node.rest[key]);
export const account =
  (key: string): Resolver =>
  (node) =>
    actorOf(node.rest[key]);
export const resourcePath: Resolver = (node) => pathnameOf(node.rest.html_url);

/** A field that only a read of the single resource shows. Without that read the mirror cannot answer. */
export const onceRead =
  (key: string) =>
  (node: Node, _args: unknown, call: GraphqlCall, info: FieldInfo): Json => {
    const value = node.rest[key];
    if (value !== undefined) return value;
    call.lacks();
    throw typedError("SERVICE_UNAVAILABLE", `\`${info.fieldName}\` of this ${node.kind} is not mirrored yet.`);
  };

/** Refuses a field of this resource, since the mirror does not hold it. @throws GraphQLError if upstream may not answer */
export function fieldNotHeld(call: GraphqlCall, { fieldName }: FieldInfo, kind: Node["kind"]): never {
  call.lacks();
  throw typedError("FORBIDDEN", `\`${fieldName}\` of this ${kind} is not mirrored. ${helpBeyond(call.ctx.config)}`);
}

/** A field that may be null and that the mirror cannot know: `forward/side.ts` names these. */
export const notMirrored: Resolver = () => null;

/**
 * Hands the document to upstream, since the mirror lacks what it asks of these things of a repository.
 * @throws GraphQLError if upstream may not answer it
 */
export function lacking(call: GraphqlCall, things: "branches and tags" | MirrorPart): never {
  call.lacks();
  throw typedError(
    "UNPROCESSABLE",
    `This of the ${things} of this repository is not mirrored. ${helpBeyond(call.ctx.config)}`,
  );
}

/** A REST value as GraphQL's enum has it: `too heated` → `TOO_HEATED`, `off-topic` → `OFF_TOPIC`. */
export function enumValue(value: Json | undefined): string | null {
  return typeof value === "string" ? value.toUpperCase().replaceAll(/[ -]/g, "_") : null;
}

/** The state of a pull request, as GraphQL has it. */
export function pullState({ rest: { merged_at, state } }: Pick<Node, "rest">): string | null {
  return merged_at ? "MERGED" : enumValue(state);
}

export function pathnameOf(address: Json | undefined): string | null {
  return (typeof address === "string" && URL.parse(address)?.pathname) || null;
}

/** The id, even if it has outgrown the type that the service gives it: see `schema.ts`. */
export const databaseId: Resolver = rest("id");

/** The global id, in the form that the caller wants. */
export const nodeId: Resolver = ({ rest: { node_id: id }, repositoryId }, _args, call) => call.idOf(id, repositoryId);
/** The same of what REST shows only in part. */
export const nodeIdOnceRead: Resolver = (node, args, call, info) =>
  call.idOf(onceRead("node_id")(node, args, call, info), node.repositoryId);

const identity: TypeResolvers = {
  id: nodeId,
  databaseId,
  fullDatabaseId: (node) => String(node.rest.id),
};

/** A commit whose hash is known. */
export function commitNode(repositoryId: number, oid: Json | undefined): Node | null {
  return typeof oid === "string" ? { kind: "Commit", repositoryId, rest: { oid } } : null;
}

export const ofRepository: TypeResolvers = {
  repository: (node, _args, call) => call.requireRepositoryById(node.repositoryId),
};

export const comment: TypeResolvers = {
  ...identity,
  ...ofRepository,
  body: ({ rest: { body } }) => body ?? "",
  author: account("user"),
  publishedAt: rest("created_at"),
  viewerDidAuthor: ({ rest: { user } }, _args, call) => objectOf(user).id === call.caller.userId,
  authorAssociation: ({ repositoryId, rest: { author_association } }, _args, call) => {
    const shown = associationFor(author_association, accessLevelOf(call.caller, repositoryId));
    // Only upstream knows whether this caller is shown a closer association.
    if (shown !== author_association) call.lacks();
    return shown;
  },
  createdAt: rest("created_at"),
  updatedAt: rest("updated_at"),
  url: rest("html_url"),
  resourcePath,
};

/** A REST time with milliseconds or an offset, as GraphQL writes times: `2026-01-31T12:00:00Z`. */
export function utcTime(value: Json | undefined): string | null {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString().replace(".000Z", "Z");
}

// Checks the caller's rights to the contents of a repository.

/**
 * Whether the caller may read all these resources of commits. False: only upstream knows.
 * @throws GraphQLError FORBIDDEN to our own tokens that may not
 */
export async function readsCodeOf(
  call: GraphqlCall,
  repositoryId: number,
  ...rights: readonly CodeRight[]
): Promise<boolean> {
  const { rest } = await call.requireRepositoryById(repositoryId);
  const { caller, access } = call;
  const repository = { id: repositoryId, isPrivate: rest.private === true };
  if (rights.every((right) => readsCode(caller, access, repository, right))) return true;
  if (caller.by.of === "own") throw notGiven(notAccessible(caller));
  return false;
}

/** The node, if the caller may read it. Its repository is one that they see. @throws GraphQLError FORBIDDEN */
export async function given(call: GraphqlCall, node: Node): Promise<Node> {
  if (hasWhereSeen(call.access, "issues") && hasWhereSeen(call.access, "pulls")) return node;
  const right = await rightFor(call, node);
  return right === "metadata" ? node : call.withRight({ repositoryId: node.repositoryId, right }, () => node);
}

/** The right that a node takes besides access to its repository, if the node lies in one. */
export async function rightFor(call: GraphqlCall, node: Node): Promise<Right> {
  const { kind, repositoryId, rest } = node;
  switch (kind) {
    case "Issue":
      // An issue may be the issue side of a pull request.
      return rest.pull_request == null ? "issues" : "pulls";
    case "PullRequest":
    case "PullRequestReview":
    case "PullRequestReviewComment":
      return "pulls";
    case "Label":
    case "Milestone":
      return "issues or pulls";
    case "IssueComment": {
      const number = Number(String(rest.issue_url).split("/").at(-1));
      const parent =
        (await call.numbered("Issue", repositoryId, number)) ??
        (await call.numbered("PullRequest", repositoryId, number));
      if (!parent) throw typedError("NOT_FOUND", "Could not resolve to an issue or pull request.");
      return rightFor(call, parent);
    }
    default:
      return "metadata";
  }
}

/** What the fields of several types share. */
import type { Json } from "../../../json.ts";
import { associationFor } from "../../../mirror/render/public-keys.ts";
import { closenessOf } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call.ts";
import { typedError } from "../errors.ts";
import { actorOf, type Node } from "../node.ts";
import type { FieldInfo } from "../run/plan.ts";

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
export const path: Resolver = (node) => pathnameOf(node.rest.html_url);

/** A field that only a read of the single resource shows. Without that read the mirror cannot answer. */
export const onceRead =
  (key: string) =>
  (node: Node, _args: unknown, call: GraphqlCall, info: FieldInfo): Json => {
    const value = node.rest[key];
    if (value !== undefined) return value;
    call.lacks();
    throw typedError("SERVICE_UNAVAILABLE", `\`${info.fieldName}\` of this ${node.kind} is not mirrored yet.`);
  };

/** A field that may be null and that the mirror cannot know: `forward/beyond.ts` names these. */
export const notMirrored: Resolver = () => null;

/** A REST value as GraphQL's enum has it: `too heated` → `TOO_HEATED`, `off-topic` → `OFF_TOPIC`. */
export function enumValue(value: Json | undefined): string | null {
  return typeof value === "string" ? value.toUpperCase().replaceAll(/[ -]/g, "_") : null;
}

export function pathnameOf(address: Json | undefined): string | null {
  return (typeof address === "string" && URL.parse(address)?.pathname) || null;
}

/** The id, even if it has outgrown the type that the service gives it: see `schema.ts`. */
export const databaseId: Resolver = rest("id");

const identity: TypeResolvers = {
  id: rest("node_id"),
  databaseId,
  fullDatabaseId: (node) => String(node.rest.id),
};

/** A commit whose hash is known. */
export function commitNode(repositoryId: number, oid: Json | undefined): Node | null {
  return typeof oid === "string" ? { kind: "Commit", repositoryId, rest: { oid } } : null;
}

export const ofRepository: TypeResolvers = {
  repository: (node, _args, call) => requireShownRepository(call, node.repositoryId),
};

export async function requireShownRepository(call: GraphqlCall, id: number): Promise<Node> {
  const repository = await call.repository(id);
  if (repository) return repository;
  call.lacks();
  throw typedError("NOT_FOUND", "Could not resolve to a Repository.");
}

export const comment: TypeResolvers = {
  ...identity,
  ...ofRepository,
  body: ({ rest: { body } }) => body ?? "",
  author: account("user"),
  authorAssociation: ({ repositoryId, rest: { author_association } }, _args, call) => {
    const shown = associationFor(author_association, closenessOf(call.caller, repositoryId));
    // Only upstream knows whether this caller is shown a closer association.
    if (shown !== author_association) call.lacks();
    return shown;
  },
  createdAt: rest("created_at"),
  updatedAt: rest("updated_at"),
  url: rest("html_url"),
  resourcePath: path,
};

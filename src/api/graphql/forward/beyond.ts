/** Which documents are upstream's to answer, as far as they tell by themselves. */
import { type DocumentNode, type GraphQLSchema, TypeInfo, visit, visitWithTypeInfo } from "graphql";
import { isOwnCursor } from "../../dialect/cursor.ts";
import { textsGiven } from "./given.ts";

/** Something turned out to be asked for that only upstream has. */
export class BeyondMirrorError extends Error {
  override name = "BeyondMirrorError";
}

/**
 * Fields that upstream knows and the mirror never does, though they are in the schema. Lists of repositories and of who may
 * be assigned are here since the mirror has a part of them.
 */
const NEVER_MIRRORED: Readonly<Record<string, readonly string[]>> = {
  PullRequest: ["baseRef", "reviewDecision"],
  Ref: ["branchProtectionRule"],
  License: ["nickname"],
  Label: ["createdAt", "updatedAt"],
  PullRequestReview: ["reactionGroups"],
  Repository: ["assignableUsers"],
  RepositoryOwner: ["repositories"],
  User: ["repositories"],
  Organization: ["repositories"],
  // The service's whole schema is what such callers can use.
  Query: ["__schema", "__type"],
};

const known = new WeakMap<DocumentNode, boolean>();

/** Whether a valid document names a field that is never mirrored. Pure. */
export function namesUnmirrored(schema: GraphQLSchema, document: DocumentNode): boolean {
  return known.getOrInsertComputed(document, () => {
    let isNamed = false;
    const types = new TypeInfo(schema);
    visit(
      document,
      visitWithTypeInfo(types, {
        Field: ({ name }) => {
          isNamed ||= NEVER_MIRRORED[types.getParentType()?.name ?? ""]?.includes(name.value) ?? false;
        },
      }),
    );
    return isNamed;
  });
}

/** A search counts its results, so its places mean the same on either side. */
const PLACE_OF_SEARCH = /^cursor:\d+$/;

/**
 * Whose cursors a document goes on from; null: it has none, or only those that either side knows. A list has to be read to its
 * end on the side on which it was begun. Pure.
 */
export function cursorsOf(
  document: DocumentNode,
  variables: Readonly<Record<string, unknown>>,
): "ours" | "upstream's" | null {
  const cursors = textsGiven(document, variables)
    .filter(({ name, text }) => (name === "after" || name === "before") && text !== "")
    .map(({ text }) => text)
    .filter((text) => !PLACE_OF_SEARCH.test(Buffer.from(text, "base64").toString("latin1")));
  if (cursors.some(isOwnCursor)) return "ours";
  return cursors.length > 0 ? "upstream's" : null;
}

import { type DocumentNode, type GraphQLSchema, TypeInfo, visit, visitWithTypeInfo } from "graphql";
import type { ApiContext } from "../../call/call.ts";
import type { User } from "../../callers/permissions.ts";
import { isOwnCursor } from "../../dialect/paging.ts";
import type { Query } from "../documents/query.ts";
import { knowsAllNamed } from "./forward.ts";
import { textsGiven } from "./given.ts";
import { wholeDocument } from "./unknown.ts";

/**
 * Which side answers. A query that either side may answer begins here. It goes to upstream if the mirror lacks
 * something.
 */
export type Side = "ours" | "upstream's" | "either";

/** Says which side answers. */
export class Sides {
  readonly #ctx: ApiContext;
  readonly #schema: GraphQLSchema;
  /** Whether documents name what is never mirrored. It stays known for as long as the document. */
  readonly #known = new WeakMap<DocumentNode, boolean>();

  constructor(ctx: ApiContext, schema: GraphQLSchema) {
    this.#ctx = ctx;
    this.#schema = schema;
  }

  /** Which side answers a caller who may be forwarded, as far as the document tells. */
  async of(query: Query, caller: User): Promise<Side> {
    const { operation, document, variables } = query;
    if (operation.operation === "subscription") return "ours";
    // The side that began a list has to read it to its end.
    const begun = cursorsOf(document, variables.coerced);
    if (begun !== null) return begun;
    if (this.#known.getOrInsertComputed(document, () => namesUnmirrored(this.#schema, document))) return "upstream's";
    const isMutation = operation.operation === "mutation";
    if (isMutation && !(await knowsAllNamed(this.#ctx, caller, wholeDocument(query)))) return "upstream's";
    return "either";
  }
}

/**
 * Fields of our schema that upstream knows and the mirror never does. Lists of repositories and of assignable users are
 * among them, since the mirror has only a part of each.
 */
const NEVER_MIRRORED: Readonly<Record<string, readonly string[]>> = {
  PullRequest: ["reviewDecision"],
  License: ["nickname"],
  Label: ["createdAt", "updatedAt"],
  PullRequestReview: ["reactionGroups"],
  Repository: ["assignableUsers"],
  RepositoryOwner: ["repositories"],
  User: ["repositories"],
  Organization: ["repositories"],
  // Callers who read the schema want the service's whole schema.
  Query: ["__schema", "__type"],
};

/** Whether a valid document names a field that is never mirrored. */
function namesUnmirrored(schema: GraphQLSchema, document: DocumentNode): boolean {
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
}

/** A cursor of a search counts results, so it means the same here and at upstream. */
const PLACE_OF_SEARCH = /^cursor:\d+$/;

/**
 * Whose cursors a document continues from. Null: it has no cursors, or only cursors that both sides understand. The
 * side that began a list has to read it to its end. Pure.
 */
function cursorsOf(document: DocumentNode, variables: Readonly<Record<string, unknown>>): "ours" | "upstream's" | null {
  const cursors = textsGiven(document, variables)
    .filter(({ name, text }) => (name === "after" || name === "before") && text !== "")
    .map(({ text }) => text)
    .filter((text) => !PLACE_OF_SEARCH.test(Buffer.from(text, "base64").toString("latin1")));
  if (cursors.some(isOwnCursor)) return "ours";
  return cursors.length > 0 ? "upstream's" : null;
}

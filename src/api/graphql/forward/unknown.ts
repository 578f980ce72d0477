import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
} from "graphql";
import { typedError } from "../errors.ts";
import { isWithinBounds, readRequest } from "../parse.ts";
import { isTooDeep, parsed } from "../run/validation.ts";

/** A document that is answered as a whole by upstream, or by nobody. */
export interface WholeDocument {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  /** With what the caller gave, coerced or not. */
  variables: Readonly<Record<string, unknown>>;
}

/**
 * The document in a body that our schema refuses and upstream's larger one may know. Null: it was refused for its size,
 * cannot be read, or names no operation, so upstream could not answer it either. Pure.
 * @param errors why it is refused
 */
export function perhapsUpstreams(
  schema: GraphQLSchema,
  text: string,
  errors: readonly GraphQLError[],
): WholeDocument | null {
  // Only errors about bounds have a type.
  if (errors.some(({ extensions }) => extensions.type !== undefined)) return null;
  const asked = readRequest(text);
  if (!("query" in asked)) return null;
  const document = parsed(asked.query);
  if (!("kind" in document) || isTooDeep(document)) return null;
  const operation = getOperationAST(document, asked.operationName);
  if (!operation || operation.operation === "subscription") return null;
  const { variables } = asked;
  return isWithinBounds(schema, document, operation, variables) ? { document, operation, variables } : null;
}

/** Said beside a document's faults to callers whose documents are never forwarded. */
export function notAskedOfUpstream(isPassedThrough: boolean): GraphQLError {
  const help = isPassedThrough
    ? "It sends whole documents to the service for those who show a token of the service's own."
    : "Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.";
  return typedError("FORBIDDEN", `This mirror does not have all that the document names. ${help}`);
}

import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
} from "graphql";
import type { Config } from "../../../config.ts";
import { isWithinBounds, type Query, readRequest } from "../documents/query.ts";
import { isTooDeep } from "../documents/size.ts";
import { parsedDocument } from "../documents/validity.ts";
import { helpBeyond, typedError } from "../run/errors.ts";

/** A document that either upstream answers as a whole, or nobody. */
export interface WholeDocument {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  /** The values that the caller gave, coerced or not. */
  variables: Readonly<Record<string, unknown>>;
}

/** The document of a query that our schema knows. */
export function wholeDocument({ document, operation, variables }: Query): WholeDocument {
  return { document, operation, variables: variables.coerced };
}

/**
 * The whole document of a body, if our schema refuses it and upstream's larger schema may not. Null: upstream could not
 * answer it either, since it is too large, cannot be read, or names no operation. Pure.
 * @param errors why our schema refuses it
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
  const document = parsedDocument(asked.query);
  if (!("kind" in document) || isTooDeep(document)) return null;
  const operation = getOperationAST(document, asked.operationName);
  if (!operation || operation.operation === "subscription") return null;
  const { variables } = asked;
  return isWithinBounds(schema, document, operation, variables) ? { document, operation, variables } : null;
}

/** The error for callers whose documents are never forwarded. It stands beside a document's faults. */
export function notAskedOfUpstream(config: Pick<Config, "forwarding">): GraphQLError {
  return typedError("FORBIDDEN", `This mirror does not have all that the document names. ${helpBeyond(config)}`);
}

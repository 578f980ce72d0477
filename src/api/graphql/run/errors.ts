import { type FieldNode, GraphQLError, locatedError } from "graphql";
import type { Config } from "../../../config.ts";

/** What a caller can do who wants what the mirror lacks. */
export function helpBeyond({ forwarding }: Pick<Config, "forwarding">): string {
  return forwarding
    ? "Show a token of the service's own, and this mirror has the service answer the whole document."
    : "Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.";
}

/** The service's types of error. */
type ErrorType =
  | "NOT_FOUND"
  | "FORBIDDEN"
  | "MISSING_PAGINATION_BOUNDARIES"
  | "EXCESSIVE_PAGINATION"
  | "INVALID_PAGINATION_ARGUMENTS"
  | "INVALID_CURSOR_ARGUMENTS"
  | "MAX_NODE_LIMIT_EXCEEDED"
  | "RATE_LIMITED"
  | "RESOURCE_LIMITS_EXCEEDED"
  | "ARGUMENT_LIMIT"
  | "UNPROCESSABLE"
  | "SERVICE_UNAVAILABLE"
  // Only another mirror gets this type: what it asks for has still to be read here.
  | "NOT_YET";

/** An error that the caller is told of as it is. */
export function typedError(type: ErrorType, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type } });
}

/** A field that must have a value has none: its row or its resolver is broken. The message is graphql-js's. */
export class MissingValueError extends GraphQLError {
  readonly field: string;

  constructor(field: string) {
    super(`Cannot return null for non-nullable field ${field}.`);
    this.field = field;
  }
}

/**
 * An error of a field, with its path and where the field stands in the document, unless it has them already. As
 * graphql-js's own, which reads the document up to the field for each of perhaps thousands of errors.
 * @param nodes the field's, of a parsed document
 */
export function errorOfField(error: unknown, nodes: readonly FieldNode[], path: (string | number)[]): GraphQLError {
  const located = locatedError(error, undefined, path);
  const locations = nodes.flatMap(({ loc }) =>
    loc ? [{ line: loc.startToken.line, column: loc.startToken.column }] : [],
  );
  return located.locations ? located : Object.assign(located, { locations });
}

/** The caller's token lacks a permission that the field takes. The service marks such errors by `saml_failure`. */
export function notGiven(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type: "FORBIDDEN", saml_failure: false } });
}

/** The service sends this type and another (`RATE_LIMIT`); octokit's plugin for limits knows this one. */
export function rateLimited(userId: number): GraphQLError {
  return typedError("RATE_LIMITED", `API rate limit exceeded for user ID ${userId}.`);
}

/** A query asks for more than one query may. The service's message gives no details either. */
export function resourceLimit(): GraphQLError {
  return typedError("RESOURCE_LIMITS_EXCEEDED", "Resource limits for this query exceeded.");
}

/** An error in upstream's own words. `type` is one of the service's types. We do not know all of them. */
export function upstreamsError(type: string | null | undefined, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type: type ?? "UNPROCESSABLE" } });
}

/** An error as the service writes it: the type stands beside the message, not among the extensions. */
export function shownError({ message, path, locations, extensions }: GraphQLError): Record<string, unknown> {
  const { type, ...others } = extensions;
  return {
    ...(type === undefined ? {} : { type }),
    ...(path === undefined ? {} : { path }),
    ...(Object.keys(others).length > 0 ? { extensions: others } : {}),
    ...(locations === undefined ? {} : { locations }),
    message,
  };
}

/** Upstream has to answer the document: the mirror lacks something that it asks for. */
export class BeyondMirrorError extends Error {
  override name = "BeyondMirrorError";
}

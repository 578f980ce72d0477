import { GraphQLError } from "graphql";

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
  // To another mirror: what is asked for has still to be read.
  | "NOT_YET";

/** An error that the caller is told of as it is. */
export function typedError(type: ErrorType, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type } });
}

/** A field that must have a value has none: its row is broken, or the field is. In graphql-js's words. */
export class MissingValueError extends GraphQLError {
  readonly field: string;

  constructor(field: string) {
    super(`Cannot return null for non-nullable field ${field}.`);
    this.field = field;
  }
}

/** The token that was shown was not given what the field takes. The service says by `saml_failure` that it is only that. */
export function notGiven(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type: "FORBIDDEN", saml_failure: false } });
}

/** The service sends this type and another (`RATE_LIMIT`); octokit's plugin for limits knows this one. */
export function quotaSpent(userId: number): GraphQLError {
  return typedError("RATE_LIMITED", `API rate limit exceeded for user ID ${userId}.`);
}

/** A query asks for more than one may. The service says no more than that either. */
export function resourceLimit(): GraphQLError {
  return typedError("RESOURCE_LIMITS_EXCEEDED", "Resource limits for this query exceeded.");
}

/** An error in upstream's own words. `type` is one of the service's, and it has more than we know. */
export function upstreamsError(type: string | null | undefined, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type: type ?? "UNPROCESSABLE" } });
}

/** As the service writes it: the type stands beside the message, not among the extensions. */
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

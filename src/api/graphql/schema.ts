import { readFileSync } from "node:fs";
import {
  buildSchema,
  GraphQLError,
  type GraphQLFieldResolver,
  GraphQLScalarType,
  type GraphQLSchema,
  isAbstractType,
  isInterfaceType,
  isObjectType,
  isScalarType,
} from "graphql";
import { mutationResolvers } from "./mutate/mutations.ts";
import type { Node } from "./node.ts";
import { queryResolvers, typeResolvers } from "./resolve/resolvers.ts";
import { subscriptionFields } from "./subscribe/subscriptions.ts";

/** The schema that is served, with the resolver of each field. */
export function apiSchema(): GraphQLSchema {
  const schema = buildSchema(readFileSync(new URL("./schema.graphql", import.meta.url), "utf8"));
  const resolvers: Record<string, Record<string, unknown>> = {
    ...typeResolvers,
    Query: queryResolvers,
    Mutation: mutationResolvers,
  };
  // The service answers ids beyond 32 bits all the same.
  const wideInt = new GraphQLScalarType({ name: "Int", coerceOutputValue: (value) => value });
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name === "DateTime" && isScalarType(type)) type.coerceInputValue = checkedTime;
    if (isAbstractType(type)) type.resolveType = (node: Node) => node.kind;
    const { databaseId } = isObjectType(type) || isInterfaceType(type) ? type.getFields() : {};
    if (databaseId) databaseId.type = wideInt;
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const resolve = resolvers[type.name]?.[field.name];
      // No type can say that a field of the schema has the arguments that its resolver reads.
      if (resolve) field.resolve = resolve as GraphQLFieldResolver<unknown, unknown>;
      const subscription = type.name === "Subscription" ? subscriptionFields[field.name] : undefined;
      if (subscription) Object.assign(field, subscription);
    }
  }
  return schema;
}

/** The text, if it is a time. @throws GraphQLError for any other text */
function checkedTime(value: unknown): string {
  if (typeof value === "string" && !Number.isNaN(Date.parse(value))) return value;
  throw new GraphQLError(
    `Could not parse a DateTime from ${JSON.stringify(value)}: it should look like 2026-01-31T12:00:00Z`,
  );
}

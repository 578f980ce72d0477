/**
 * Values for what the service's schema has and the simulator does not model. Each is made of its type and its name
 * alone, so the same question has the same answer; none is null or empty, so nobody else can have guessed it.
 */
import {
  defaultFieldResolver,
  type GraphQLFieldResolver,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { typeNameOf } from "./resolvers.ts";

const TYPE = Symbol("type");

/** A value without fields: each field is made up when it is asked for. */
interface MadeUp {
  [TYPE]: string;
}

/** The type of a row, or of a value that was made up. */
export function typeOf(value: unknown): string {
  return isMadeUp(value) ? value[TYPE] : typeNameOf(value);
}

/** Has fields that nothing answers make up their values. */
export function makeUpTheRest(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith("__")) continue;
    for (const field of Object.values(type.getFields())) {
      const { resolve = knownOrMadeUp } = field;
      field.resolve = (source, args, context, info) =>
        (isMadeUp(source) ? knownOrMadeUp : resolve)(source, args, context, info);
    }
  }
}

const knownOrMadeUp: GraphQLFieldResolver<unknown, unknown> = (source, args, context, info) => {
  const known =
    isMadeUp(source) && !(info.fieldName in source) ? undefined : defaultFieldResolver(source, args, context, info);
  return fits(info.returnType, known) ? known : madeUp(info.returnType, info, args);
};

/** A row may have a property of the same name that means something else. */
function fits(type: GraphQLOutputType, value: unknown): boolean {
  if (value === undefined || value === null) return value === null && !isNonNullType(type);
  if (isNonNullType(type)) return fits(type.ofType, value);
  if (isListType(type)) return Array.isArray(value);
  return isCompositeType(type) === (typeof value === "object");
}

function madeUp(type: GraphQLOutputType, info: GraphQLResolveInfo, args: Record<string, unknown>): unknown {
  if (isNonNullType(type)) return madeUp(type.ofType, info, args);
  if (isListType(type)) return [madeUp(type.ofType, info, args)];
  if (isAbstractType(type)) return { [TYPE]: String(info.schema.getPossibleTypes(type)[0]) };
  if (isObjectType(type)) return { [TYPE]: type.name, ...repeated(args) };
  if (isEnumType(type)) return type.getValues()[0]?.value;
  return leaf(type.name, info);
}

/** A mutation's payload repeats what the caller calls it. */
function repeated({ input }: Record<string, unknown>): object {
  const isGiven = typeof input === "object" && input !== null && "clientMutationId" in input;
  return isGiven ? { clientMutationId: input.clientMutationId } : {};
}

function leaf(type: string, { fieldName, parentType }: GraphQLResolveInfo): unknown {
  switch (type) {
    case "Int":
    case "Float":
      return fieldName.length;
    case "BigInt":
      return String(fieldName.length);
    case "Boolean":
      // There is no second page, and no pull request waits in a merge queue.
      return parentType.name !== "PageInfo" && !/MergeQueue/.test(fieldName);
    case "DateTime":
    case "GitTimestamp":
    case "PreciseDateTime":
      return "2026-02-03T04:05:06Z";
    case "Date":
      return "2026-02-03";
    case "GitObjectID":
      return Buffer.from(fieldName.padEnd(20, "-").slice(0, 20)).toString("hex");
    case "URI":
      return `https://made.up/${parentType.name}/${fieldName}`;
    default:
      return `${parentType.name}.${fieldName}`;
  }
}

function isMadeUp(value: unknown): value is MadeUp {
  return typeof value === "object" && value !== null && TYPE in value;
}

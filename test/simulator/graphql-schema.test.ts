import { readFileSync } from "node:fs";
import { schema as published } from "@octokit/graphql-schema";
import {
  buildSchema,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isUnionType,
  validateSchema,
} from "graphql";
import { describe, expect, test } from "vitest";
import { buildSimulatorSchema } from "../../src/simulator/graphql/schema.ts";

const theirs: GraphQLSchema = buildSchema(published.idl, { assumeValidSDL: true });
const ours = buildSimulatorSchema();
const types = Object.values(ours.getTypeMap()).filter((type) => !type.name.startsWith("__"));

test("the schema is valid, which no simulator asks again", () => {
  const text = readFileSync(new URL("../../src/simulator/graphql/schema.graphql", import.meta.url), "utf8");
  expect(validateSchema(buildSchema(text))).toEqual([]);
});

describe("the served schema is a subset of the service's own", () => {
  test.each(types.map((type) => [type.name, type] as const))("%s", (name, type) => {
    const their = theirs.getType(name);
    expect(their?.constructor.name, "kind of type").toBe(type.constructor.name);
    if (isEnumType(type) && isEnumType(their)) {
      expect(
        type
          .getValues()
          .map((value) => value.name)
          .sort(),
      ).toEqual(
        their
          .getValues()
          .map((value) => value.name)
          .sort(),
      );
    }
    if (isUnionType(type) && isUnionType(their)) {
      const members = their.getTypes().map((member) => member.name);
      for (const member of type.getTypes()) expect(members).toContain(member.name);
    }
    if ((isObjectType(type) || isInterfaceType(type)) && (isObjectType(their) || isInterfaceType(their))) {
      for (const face of type.getInterfaces())
        expect(their.getInterfaces().map((one) => one.name)).toContain(face.name);
    }
    const own =
      isObjectType(type) || isInterfaceType(type) || isInputObjectType(type) ? Object.values(type.getFields()) : [];
    for (const field of own) {
      const other =
        isObjectType(their) || isInterfaceType(their) || isInputObjectType(their)
          ? their.getFields()[field.name]
          : undefined;
      expect(String(other?.type), `${name}.${field.name}`).toBe(String(field.type));
      const argumentsOf = (one: unknown) =>
        ((one as { args?: readonly { name: string; type: unknown; default?: unknown }[] }).args ?? []).map(
          (argument) => `${argument.name}: ${argument.type}`,
        );
      expect(argumentsOf(field), `${name}.${field.name}`).toEqual(argumentsOf(other));
    }
  });
});

test("what clients look for by introspection is there", () => {
  const issue = ours.getType("Issue");
  expect(isObjectType(issue) && Object.keys(issue.getFields())).toEqual(
    expect.arrayContaining(["stateReason", "isPinned", "fullDatabaseId"]),
  );
});

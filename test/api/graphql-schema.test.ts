import { readFileSync } from "node:fs";
import {
  type ArgumentNode,
  buildSchema,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  isSpecifiedScalarType,
  isUnionType,
  print,
  validateSchema,
} from "graphql";
import { describe, expect, test } from "vitest";
import { extractServiceOnly, serviceOnlyText } from "../../scripts/generate/service-graphql.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";

const ours: GraphQLSchema = apiSchema();
const published = new URL("../../node_modules/@octokit/graphql-schema/schema.graphql", import.meta.url);
const theirs = buildSchema(readFileSync(published, "utf8"), { assumeValidSDL: true });

/** Type, default and deprecation of an argument or input field, as text. */
function signature(input: GraphQLArgument | GraphQLInputField | undefined): string | undefined {
  const value = input?.astNode?.defaultValue;
  return input && `${input.type}${value ? ` = ${print(value as unknown as ArgumentNode)}` : ""}`;
}

test("the schema is valid, which no start asks again", () => {
  const text = readFileSync(new URL("../../src/api/graphql/schema.graphql", import.meta.url), "utf8");
  expect(validateSchema(buildSchema(text))).toEqual([]);
});

test("a value that upstream's enum has got later is shown, and what is no value is none", () => {
  const type = ours.getType("CommentAuthorAssociation");
  if (!isEnumType(type)) throw new Error("The schema has no such enum");
  expect(type.coerceOutputValue("OWNER")).toBe("OWNER");
  expect(type.coerceOutputValue("FRIEND_OF_2026")).toBe("FRIEND_OF_2026");
  for (const odd of ["", "no name", "lower", 5, null]) expect(() => type.coerceOutputValue(odd), String(odd)).toThrow();
});

test("a time of GraphQL is UTC's where no zone is named", () => {
  const type = ours.getType("DateTime");
  if (!isScalarType(type)) throw new Error("The schema has no such type");
  expect(type.coerceInputValue("2026-01-31T12:00:00")).toBe("2026-01-31T12:00:00.000Z");
  for (const odd of ["5", "yesterday", 5]) expect(type.coerceInputValue(odd), String(odd)).toBeUndefined();
});

/** Ours alone, and they say so. */
const EXPERIMENTAL = ["Subscription", "IssueChanged", "PullRequestChanged"];

test.each(EXPERIMENTAL)("%s says that it is experimental", (name) => {
  expect(ours.getType(name)?.description).toMatch(/^Experimental, and not part of GitHub's schema\./);
});

describe("the schema is a strict subset of the service's", () => {
  const types = Object.values(ours.getTypeMap()).filter(
    (type) => !type.name.startsWith("__") && !isSpecifiedScalarType(type) && !EXPERIMENTAL.includes(type.name),
  );
  test.each(types.map((type) => [type.name, type] as const))("%s", (name, type) => {
    const published = theirs.getType(name);
    expect(published?.astNode?.kind).toBe(type.astNode?.kind);
    if (isEnumType(type) && isEnumType(published)) {
      // All of them: a value that is left out would make an answer invalid.
      expect(type.getValues().map((value) => value.name)).toEqual(published.getValues().map((value) => value.name));
    }
    if (isUnionType(type) && isUnionType(published)) {
      const members = published.getTypes().map((member) => member.name);
      for (const member of type.getTypes()) expect(members).toContain(member.name);
    }
    if (isInputObjectType(type) && isInputObjectType(published)) {
      for (const field of Object.values(type.getFields()))
        expect(signature(field), field.name).toBe(signature(published.getFields()[field.name]));
      for (const field of Object.values(published.getFields()))
        if (`${field.type}`.endsWith("!")) expect(type.getFields()).toHaveProperty(field.name);
    }
    if ((isObjectType(type) || isInterfaceType(type)) && (isObjectType(published) || isInterfaceType(published))) {
      const implemented = published.getInterfaces().map((one) => one.name);
      for (const one of type.getInterfaces()) expect(implemented).toContain(one.name);
      for (const field of Object.values(type.getFields())) {
        const like = published.getFields()[field.name];
        expect(`${like?.type}`, field.name).toBe(`${field.type}`);
        expect(like?.deprecationReason, field.name).toBe(field.deprecationReason);
        for (const argument of field.args) {
          const other = like?.args.find((one) => one.name === argument.name);
          expect(signature(argument), `${field.name}(${argument.name})`).toBe(signature(other));
        }
        for (const argument of like?.args ?? []) {
          if (`${argument.type}`.endsWith("!"))
            expect(
              field.args.map((one) => one.name),
              field.name,
            ).toContain(argument.name);
        }
      }
    }
  });
});

test("what only the service has is written down: after a change run scripts/generate/service-graphql.ts", () => {
  const file = new URL("../../src/api/graphql/documents/service-only.json", import.meta.url);
  expect(readFileSync(file, "utf8")).toBe(serviceOnlyText(extractServiceOnly()));
});

/** In the schema since clients name them, and never shown: see docs/decisions/0013-what-gh-asks.md. */
const NEVER_SHOWN = /^(ProjectCard|Project|ProjectColumn|BranchProtectionRule|MergeQueue|WorkflowRun|Workflow)$/;

test("every field of a resource has something that shows it", () => {
  for (const type of Object.values(ours.getTypeMap())) {
    if (
      !isObjectType(type) ||
      type.name.startsWith("__") ||
      /Connection$|Edge$|Payload$|Changed$|^PageInfo$|^RateLimit$|^Ref$|^Language$|^License$|^Topic$|^ReactionGroup$|Summary$|StateCount$/.test(
        type.name,
      ) ||
      NEVER_SHOWN.test(type.name)
    )
      continue;
    for (const field of Object.values(type.getFields()))
      expect(field.resolve, `${type.name}.${field.name}`).toBeTypeOf("function");
  }
});

import { readFileSync, writeFileSync } from "node:fs";
import {
  buildSchema,
  type GraphQLSchema,
  isCompositeType,
  isInputObjectType,
  isInterfaceType,
  isNonNullType,
  isObjectType,
} from "graphql";
import type { ServiceOnly } from "../../src/api/graphql/documents/service-only.ts";

// Writes `service-only.json`: what the service's published GraphQL schema has and ours lacks. Run it after
// `schema.graphql` was changed, or @octokit/graphql-schema was updated:
//   node scripts/generate/service-graphql.ts

const FILE = new URL("../../src/api/graphql/documents/service-only.json", import.meta.url);

/** @throws Error when the published schema is not installed */
export function extractServiceOnly(): ServiceOnly {
  const folder = import.meta.resolve("@octokit/graphql-schema").replace(/index\.js$/, "");
  // The documented shape of this file. TypeScript cannot check a file's contents.
  const { version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8")) as { version: string };
  const ours = buildSchema(readFileSync(new URL("../../src/api/graphql/schema.graphql", import.meta.url), "utf8"));
  const theirs = buildSchema(readFileSync(new URL("schema.graphql", folder), "utf8"), { assumeValidSDL: true });
  const found: ServiceOnly = {
    source: `@octokit/graphql-schema ${version}, made from the service's public schema, under the MIT license (published.LICENSE)`,
    fields: {},
    inputs: {},
    groups: {},
    objects: "",
  };
  for (const type of Object.values(ours.getTypeMap())) noteLacks(found, type.name, { ours, theirs });
  const objects: string[] = [];
  for (const type of Object.values(theirs.getTypeMap())) {
    if (!isCompositeType(type) || type.name.startsWith("__") || ours.getType(type.name)) continue;
    if (isObjectType(type)) objects.push(type.name);
    else {
      const members = theirs.getPossibleTypes(type).map(({ name }) => name);
      found.groups[type.name] = members.filter((name) => isObjectType(ours.getType(name))).join(" ");
    }
  }
  return { ...found, objects: objects.join(" ") };
}

function noteLacks(
  { fields, inputs }: ServiceOnly,
  name: string,
  { ours, theirs }: { ours: GraphQLSchema; theirs: GraphQLSchema },
): void {
  const [type, like] = [ours.getType(name), theirs.getType(name)];
  const isMutations = type === ours.getMutationType();
  if (isInputObjectType(type) && isInputObjectType(like)) {
    const lacked = Object.keys(like.getFields()).filter((one) => !(one in type.getFields()));
    if (lacked.length > 0) inputs[name] = lacked.join(" ");
  }
  if (isMutations || !(isObjectType(type) || isInterfaceType(type))) return;
  if (!(isObjectType(like) || isInterfaceType(like))) return;
  const lacked: string[] = [];
  for (const field of Object.values(like.getFields())) {
    const known = type.getFields()[field.name];
    if (!known) lacked.push(`${field.name}${isNonNullType(field.type) ? "!" : ""}`);
    const args = field.args.filter((one) => known && !known.args.some((own) => own.name === one.name));
    if (args.length > 0) inputs[`${name}.${field.name}`] = args.map((one) => one.name).join(" ");
  }
  if (lacked.length > 0) fields[name] = lacked.join(" ");
}

export function serviceOnlyText(found: ServiceOnly): string {
  return `${JSON.stringify(found, null, 2)}\n`;
}

if (import.meta.main) writeFileSync(FILE, serviceOnlyText(extractServiceOnly()));

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// biome-ignore lint/suspicious/noExplicitAny: a JSON schema is looked into without a type of its own.
type Schema = any;

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Schema>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, Schema>>>>;
  readonly "x-webhooks": Readonly<Record<string, Schema>>;
}

/** The service's own description of its REST interface and webhooks. */
export function readDescription(): Description {
  const file = createRequire(import.meta.url)
    .resolve("@octokit/openapi/package.json")
    .replace(/package\.json$/, "generated/api.github.com.json");
  return JSON.parse(readFileSync(file, "utf8"));
}

export function answerSchema(description: Description, method: string, path: string, status: string): Schema {
  const response = resolved(description, description.paths[path]?.[method]?.responses[status]);
  const content = response?.content?.["application/json"];
  if (!content) throw new Error(`The description has no ${status} of ${method} ${path}`);
  return content.schema;
}

export function webhookSchema(description: Description, name: string): Schema {
  const hook = description["x-webhooks"][name];
  if (!hook) throw new Error(`The description has no webhook ${name}`);
  return hook.post.requestBody.content["application/json"].schema;
}

function resolved(description: Description, schema: Schema): Schema {
  if (!schema?.$ref) return schema;
  const found = schema.$ref
    .slice(2)
    .split("/")
    .reduce((at: Schema, key: string) => at[key.replaceAll("~1", "/").replaceAll("~0", "~")], description);
  return resolved(description, found);
}

/**
 * GitHub docs: the service sends blank fields as null, even if their description says string or number. Examples: the
 * place of a comment whose line is gone from the diff, a deleted fork, unset fields of a label or an organisation.
 */
export const BLANK =
  /\.(position|line|labels\[\d+\]\.description|head\.repo|name|company|location|email): null is not (string|integer|object)$/;

/**
 * What is wrong with a value, each problem as `path: problem`. It knows as much of JSON Schema as the description uses.
 */
export function problemsOf(description: Description, raw: Schema, value: unknown, at = "$"): string[] {
  const schema = resolved(description, raw);
  if (!schema || (value === null && schema.nullable)) return [];
  for (const key of ["anyOf", "oneOf"]) {
    if (!schema[key]) continue;
    const found = schema[key].map((one: Schema) => problemsOf(description, one, value, at));
    if (!found.some((problems: string[]) => problems.length === 0)) {
      return found.toSorted((a: string[], b: string[]) => a.length - b.length)[0];
    }
  }
  const problems = (schema.allOf ?? []).flatMap((one: Schema) => problemsOf(description, one, value, at));
  if (schema.enum && !schema.enum.includes(value))
    problems.push(`${at}: ${JSON.stringify(value)} is not one of ${schema.enum.join(", ")}`);
  const types: string[] = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isA(type, value))) {
    return [...problems, `${at}: ${value === null ? "null" : typeof value} is not ${types.join(" or ")}`];
  }
  if (Array.isArray(value)) {
    return [
      ...problems,
      ...value.flatMap((one, index) => problemsOf(description, schema.items, one, `${at}[${index}]`)),
    ];
  }
  if (typeof value !== "object" || value === null) return problems;
  const fields = value as Record<string, unknown>;
  for (const key of schema.required ?? []) if (!(key in fields)) problems.push(`${at}.${key}: missing`);
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    if (key in fields) problems.push(...problemsOf(description, inner, fields[key], `${at}.${key}`));
  }
  return problems;
}

function isA(type: string, value: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** Fields of a value that the description does not have, because they are misspelt or invented. */
export function unknownFields(description: Description, raw: Schema, value: unknown, at = "$"): string[] {
  const schema = resolved(description, raw);
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((one) => unknownFields(description, schema?.items, one, at));
  const variants = [schema, ...["anyOf", "oneOf", "allOf"].flatMap((key) => schema?.[key] ?? [])].map((one) =>
    resolved(description, one),
  );
  if (variants.some((one) => one?.additionalProperties) || variants.every((one) => !one?.properties)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const known = variants.map((one) => one?.properties?.[key]).find((one) => one !== undefined);
    return known === undefined ? [`${at}.${key}`] : unknownFields(description, known, inner, `${at}.${key}`);
  });
}

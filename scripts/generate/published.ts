import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Published, wholePath } from "../../src/api/description/published.ts";
import { REST_OPERATIONS } from "../../src/api/operations.ts";

// Writes `published.json`: the service's published description of the operations that we serve, as OpenAPI 3.1. The
// rest of its 12 MB is left out. Run it after a route was added, or @octokit/openapi was updated:
//   node scripts/generate/published.ts

// biome-ignore lint/suspicious/noExplicitAny: a foreign document is walked without a type of its own.
type Json = any;

const COMPONENTS = ["schemas", "parameters", "responses", "headers"] as const;

/**
 * The keys of an operation that are kept. Its `description` is left out, since it speaks of the service's own tokens
 * and plans; `externalDocs` links to it.
 */
const KEPT = ["summary", "operationId", "tags", "externalDocs", "parameters", "requestBody", "responses"];

/**
 * Where the published description differs from what is sent. GitHub docs: blank fields are null, not absent. The
 * description does not say so of these: the place of a remark whose line has left the diff, the repository of a deleted
 * head, and what a label or an organization leaves empty. Each by schema and path.
 */
const SENT_AS_NULL: [string, string[]][] = [
  ["pull-request-review-comment", ["position", "line"]],
  ["review-comment", ["position", "line"]],
  ["pull-request", ["head.repo"]],
  ["pull-request-simple", ["head.repo", "labels[].description"]],
  ["organization-full", ["name", "company", "location", "email"]],
];
/** Fields that version 2026-03-10 no longer sends, and the description, which is of 2022-11-28, requires. */
const DROPPED = ["assignee", "merge_commit_sha", "has_downloads", "rate", "authorizations_url"];

/** The pages that the service's errors name where it publishes an old address, or that of another product. */
const PAGES: Readonly<Record<string, string>> = {
  "meta/get": "https://docs.github.com/rest/meta/meta#get-github-meta-information",
  "issues/remove-assignees": "https://docs.github.com/rest/issues/assignees#remove-assignees-from-an-issue",
};

/** @throws Error that names each route which the service does not publish */
export function extractPublished(): Published {
  const resolve = createRequire(import.meta.url).resolve;
  const folder = resolve("@octokit/openapi/package.json").replace(/package\.json$/, "");
  const { version } = JSON.parse(readFileSync(`${folder}package.json`, "utf8")) as { version: string };
  const all: Json = JSON.parse(readFileSync(`${folder}generated/api.github.com.json`, "utf8"));

  const byForm = new Map<string, string>();
  for (const [path, methods] of Object.entries<Json>(all.paths)) {
    for (const method of Object.keys(methods)) byForm.set(`${method} ${formOf(path)}`, path);
  }
  const publishedPath = (served: (typeof REST_OPERATIONS)[number]) =>
    byForm.get(`${served.route.method.toLowerCase()} ${formOf(wholePath(served))}`);
  // If we serve an operation under two addresses, the service publishes only one.
  const byFunction = new Map<unknown, string>();
  for (const served of REST_OPERATIONS) {
    const path = publishedPath(served);
    if (path !== undefined) byFunction.set(served.route.run.with, path);
  }
  const operations: Published["operations"] = {};
  const unknown: string[] = [];
  for (const served of REST_OPERATIONS) {
    const method = served.route.method.toLowerCase();
    const ours = wholePath(served);
    const path = publishedPath(served) ?? byFunction.get(served.route.run.with);
    if (path === undefined) {
      unknown.push(`${served.route.method} ${ours}`);
      continue;
    }
    const whole = all.paths[path][method];
    const operation = Object.fromEntries(KEPT.filter((key) => key in whole).map((key) => [key, plain(whole[key])]));
    const page = PAGES[operation.operationId];
    if (page) operation.externalDocs = { ...operation.externalDocs, url: page };
    operations[`${served.route.method} ${ours}`] = { path, operation: operation as Json };
  }
  if (unknown.length > 0) throw new Error(`The service does not publish: ${unknown.join(", ")}`);
  const source = `@octokit/openapi ${version}, made from github/rest-api-description, under the MIT license (published.LICENSE)`;
  return { source, operations, components: asSent(referenced(operations, all.components)) };
}

function asSent(components: Published["components"]): Published["components"] {
  const schemas = components.schemas as Record<string, Json>;
  for (const schema of Object.values(schemas)) {
    const required = schema.required?.filter((name: string) => !DROPPED.includes(name));
    if (required) schema.required = required;
  }
  for (const [name, paths] of SENT_AS_NULL) {
    if (!schemas[name]) continue;
    for (const path of paths) {
      const keys = path.replaceAll("[]", ".[]").split(".");
      const last = keys.pop() ?? "";
      const holder = keys.reduce((at, key) => (key === "[]" ? at.items : at.properties[key]), schemas[name]);
      if (!holder.properties?.[last]) throw new Error(`${name} is published without ${path}: mend SENT_AS_NULL`);
      holder.properties[last] = orNull(holder.properties[last]);
    }
  }
  return components;
}

/** A path without the names of its parameters. */
function formOf(path: string): string {
  return path.replace(/\{\w+\}|:\w+/g, "{}");
}

/** Every component that is referred to, directly or through another component, by name. */
function referenced(root: unknown, components: Json): Published["components"] {
  const found: Published["components"] = { schemas: {}, parameters: {}, responses: {}, headers: {} };
  const visit = (value: unknown): void => {
    for (const [, kind = "", name = ""] of JSON.stringify(value).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      const kept = found[kind as (typeof COMPONENTS)[number]];
      if (name in kept) continue;
      kept[name] = plain(components[kind][name]);
      visit(kept[name]);
    }
  };
  visit(root);
  for (const kind of COMPONENTS) {
    found[kind] = Object.fromEntries(Object.entries(found[kind]).sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  return found;
}

/**
 * Converts a schema to OpenAPI 3.1, where `null` is one of a value's types. Leaves out examples and the keys for the
 * service's own tools.
 */
function plain(value: Json): Json {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const kept: Json = {};
  for (const [key, inner] of Object.entries<Json>(value)) {
    if (key === "properties") {
      // The keys of `properties` are field names, and a field may be called `example`.
      kept.properties = Object.fromEntries(Object.entries(inner).map(([name, schema]) => [name, plain(schema)]));
    } else if (key === "enum" || key === "default" || key === "required") kept[key] = inner;
    else if (key === "content") kept.content = plain(contentOf(inner));
    else if (!/^(examples?|nullable|x-.*)$/.test(key)) kept[key] = plain(inner);
  }
  return value.nullable === true ? orNull(kept) : kept;
}

/** The errors of one operation are also described for SCIM, which Tain does not serve. */
function contentOf(content: Json): Json {
  return Object.fromEntries(Object.entries(content).filter(([type]) => type !== "application/scim+json"));
}

function orNull(schema: Json): Json {
  if (schema.enum && !schema.enum.includes(null)) schema.enum = [...schema.enum, null];
  if (schema.type !== undefined) return { ...schema, type: [...new Set([schema.type, "null"].flat())] };
  const variants = ["anyOf", "oneOf"].find((key) => key in schema);
  if (variants) return { ...schema, [variants]: [...schema[variants], { type: "null" }] };
  const { description, ...rest } = schema;
  return Object.keys(rest).length === 0
    ? schema
    : { ...(description ? { description } : {}), anyOf: [rest, { type: "null" }] };
}

/**
 * The text of the file. Each operation and component is on a line of its own, so that a diff shows which one changed.
 */
export function publishedText({ source, operations, components }: Published): string {
  const lines = (entries: object) =>
    Object.entries(entries)
      .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
      .join(",\n");
  const parts = COMPONENTS.map((kind) => `"${kind}":{\n${lines(components[kind])}\n}`);
  return `{"source":${JSON.stringify(source)},\n"operations":{\n${lines(operations)}\n},\n"components":{\n${parts.join(",\n")}\n}}\n`;
}

if (import.meta.main) {
  const { writeFile } = await import("node:fs/promises");
  await writeFile(
    new URL("../../src/api/description/published.json", import.meta.url),
    publishedText(extractPublished()),
  );
}

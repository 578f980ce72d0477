import { readFileSync } from "node:fs";
import { parseStored } from "../../json.ts";
import type { ServedOperation } from "../call/operation.ts";

/** The part of a JSON Schema (2020-12) that the page shows. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  default?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  description?: string;
  required?: boolean;
  schema: Schema;
}

export interface Reference {
  $ref: string;
}

interface Body {
  description?: string;
  required?: boolean;
  content?: Record<string, { schema?: Schema }>;
}

export interface PublishedOperation {
  summary: string;
  description?: string;
  operationId: string;
  tags: string[];
  externalDocs?: { url: string };
  parameters?: (Parameter | Reference)[];
  requestBody?: Body;
  responses: Record<string, (Body & { headers?: Record<string, unknown> }) | Reference>;
}

type Components = Record<"schemas" | "parameters" | "responses" | "headers", Record<string, unknown>>;

/**
 * The service's published descriptions of the operations that we serve, by `METHOD /our/path`, each with its published
 * path.
 */
export interface Published {
  source: string;
  operations: Record<string, { path: string; operation: PublishedOperation }>;
  components: Components;
}

const FILE = new URL("./published.json", import.meta.url);

/** Reads the descriptions that `scripts/generate/published.ts` has written. */
export function readPublished(): Published {
  return parseStored<Published>(readFileSync(FILE, "utf8"));
}

/**
 * The path of a route below the API's address, with its parameters as we name them:
 * `/repos/:owner/:repo/issues/:number`.
 */
export function wholePath({ path, route }: ServedOperation): string {
  if (route.run.of === "service") return path;
  return `/repos/:owner/:repo${path === "/" ? "" : path}`;
}

/** The object that a reference refers to. A value that is no reference is answered as it is. */
export function dereferenced<T extends object>(value: T | Reference, components: Published["components"]): T {
  if (!("$ref" in value)) return value;
  const [, , kind = "", name = ""] = value.$ref.split("/");
  const found = new Map(Object.entries(components)).get(kind)?.[name];
  if (found === undefined) throw new Error(`Nothing is called ${value.$ref}`);
  // No type can say what a reference refers to: a place takes references to its own kind.
  return dereferenced(found as T | Reference, components);
}

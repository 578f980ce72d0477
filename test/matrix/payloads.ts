/**
 * A payload of each event and action of the service. GitHub's own examples where there are some, otherwise made by the
 * description's schema.
 */
import examples from "@octokit/webhooks-examples" with { type: "json" };
import { type Fields, isObject, type Json } from "../../src/json.ts";
import { readDescription } from "../simulator/openapi.ts";

export interface EventPayload {
  event: string;
  payload: Fields;
}

/** Every event with every action, each once. */
export function payloadsOfAllEvents(): EventPayload[] {
  const found = new Map<string, EventPayload>();
  // No type can say what the package holds.
  for (const { name, examples: payloads } of examples as unknown as { name: string; examples: Fields[] }[])
    for (const payload of payloads) {
      const key = `${name} ${String(payload.action)}`;
      if (!found.has(key)) found.set(key, { event: name, payload });
    }
  for (const made of madeBySchema()) {
    const key = `${made.event} ${String(made.payload.action)}`;
    if (!found.has(key)) found.set(key, made);
  }
  return [...found.values()].toSorted((one, other) => (one.event < other.event ? -1 : 1));
}

interface Schema {
  $ref?: string;
  type?: string;
  enum?: Json[];
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  format?: string;
}

/** Schemas refer to themselves. Nothing that a delivery is judged by lies deeper. */
const DEEPEST = 5;

function madeBySchema(): EventPayload[] {
  const description = readDescription();
  const resolved = (schema: Schema): Schema => {
    if (!schema.$ref) return schema;
    const [, , part = "", name = ""] = schema.$ref.split("/");
    return resolved(description.components[part]?.[name] ?? {});
  };
  const made = (raw: Schema, depth: number): Json => {
    const schema = resolved(raw);
    const [choice] = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
    if (schema.enum) return schema.enum[0] ?? null;
    if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one) => made(one, depth)));
    if (schema.properties) {
      if (depth === DEEPEST) return {};
      return Object.fromEntries(Object.entries(schema.properties).map(([key, one]) => [key, made(one, depth + 1)]));
    }
    if (choice) return made(choice, depth);
    switch (schema.type) {
      case "integer":
      case "number":
        return 4_000_001;
      case "boolean":
        return false;
      case "array":
        return schema.items && depth < DEEPEST ? [made(schema.items, depth + 1)] : [];
      case "string":
        return schema.format === "date-time" ? "2026-01-01T00:00:00Z" : "made";
      default:
        return {};
    }
  };
  return Object.values(description["x-webhooks"]).flatMap(({ post }) => {
    const named = post.parameters.find((one: { name: string }) => one.name === "X-Github-Event")?.example;
    const payload = made(post.requestBody.content["application/json"]?.schema ?? {}, 0);
    return isObject(payload) ? [{ event: String(named ?? "").replaceAll("-", "_"), payload }] : [];
  });
}

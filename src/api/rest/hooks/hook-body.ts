import { addressFault, hostOf } from "../../../events/address-guard.ts";
import type { TargetConfig } from "../../../events/target.ts";
import { type Fields, isObject, type Json } from "../../../json.ts";
import type { Call } from "../../call.ts";
import { ApiFault, type FieldFault } from "../../dialect/fault.ts";
import { prefers } from "../../dialect/preferences.ts";

/** What a request says of a hook. Keys that the request leaves out are absent. */
export interface HookBody extends Partial<TargetConfig> {
  name?: string;
  addEvents?: string[];
  removeEvents?: string[];
  /** Whether the request says anything of the config. */
  hasConfig: boolean;
}

/** Reads a hook from a request. @throws ApiFault 400, 422 */
export function readHookBody(call: Call): HookBody {
  const body = objectIn(call.body);
  const { name, active, events, add_events, remove_events, config } = body;
  if (name !== undefined && name !== "web") throw invalidHook({ field: "name", code: "invalid" });
  if (active !== undefined && typeof active !== "boolean")
    throw new ApiFault(422, `Invalid request.\n\nFor 'properties/active', ${JSON.stringify(active)} is not a boolean.`);
  if (config !== undefined && !isObject(config))
    throw new ApiFault(422, "Invalid request.\n\nFor 'properties/config', this is not an object.");
  return {
    ...(name === undefined ? {} : { name: "web" }),
    ...(typeof active === "boolean" ? { active } : {}),
    ...ifGiven("events", eventsIn("events", events)),
    ...ifGiven("addEvents", eventsIn("add_events", add_events)),
    ...ifGiven("removeEvents", eventsIn("remove_events", remove_events)),
    ...(config === undefined ? {} : readConfig(call, config)),
    hasConfig: config !== undefined,
  };
}

/** The body of `/config`, which is the config alone. @throws ApiFault 400, 422 */
export function readConfigBody(call: Call): Partial<TargetConfig> {
  return readConfig(call, objectIn(call.body === "" ? "{}" : call.body));
}

/** The keys of a config. `rewrite_urls` is our own: "1" makes addresses of the API lead to the mirror. */
const CONFIG_KEYS: readonly string[] = ["url", "content_type", "secret", "insecure_ssl", "rewrite_urls"];

function readConfig({ ctx, api, headers }: Call, config: Fields): Partial<TargetConfig> {
  const odd = Object.keys(config).find((key) => !CONFIG_KEYS.includes(key));
  if (odd !== undefined) throw invalidHook({ code: "custom", message: `Invalid config attribute: ${odd}` });
  const { url, content_type, secret, insecure_ssl, rewrite_urls } = config;
  if (url !== undefined) requireUrl(ctx.config.targetsAllowed, url);
  if (content_type !== undefined && content_type !== "json" && content_type !== "form")
    throw invalidHook({ field: "content_type", code: "invalid" });
  if (secret !== undefined && secret !== null && typeof secret !== "string")
    throw invalidHook({ field: "secret", code: "invalid" });
  const insecure = switchIn("insecure_ssl", insecure_ssl);
  const rewrites = switchIn("rewrite_urls", rewrite_urls) ?? (prefers(headers, "rewrite-urls") || undefined);
  return {
    ...(typeof url === "string" ? { url } : {}),
    ...(content_type === undefined ? {} : { contentType: content_type }),
    ...(secret === undefined ? {} : { secret: secret || null }),
    ...(insecure === undefined ? {} : { insecureSsl: insecure }),
    ...(rewrites === undefined ? {} : { rewriteTo: rewrites ? api : null }),
  };
}

/** A switch. The service takes "1" and 1 alike. @throws ApiFault 422 */
function switchIn(field: string, value: Json | undefined): boolean | undefined {
  const text = value === undefined ? undefined : String(value);
  if (text !== undefined && text !== "0" && text !== "1") throw invalidHook({ field, code: "invalid" });
  return text === undefined ? undefined : text === "1";
}

function requireUrl(allowed: Parameters<typeof addressFault>[0], url: Json): void {
  const fault = typeof url === "string" ? addressFault(allowed, url) : "malformed";
  switch (fault) {
    case null:
      return;
    case "malformed":
      throw invalidHook({ code: "custom", message: "The URL you've entered is not valid." });
    case "unreachable": {
      const host = hostOf(new URL(String(url)));
      const message = `url is not supported because it isn't reachable over the public Internet (${host})`;
      throw invalidHook({ field: "url", code: "custom", message });
    }
    default:
      fault satisfies never;
  }
}

function eventsIn(field: string, value: Json | undefined): string[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value))
    throw new ApiFault(422, `Invalid request.\n\nFor 'properties/${field}', ${JSON.stringify(value)} is not an array.`);
  return [
    ...new Set(
      value.map((event) => {
        // Upstream adds events every year, and sends them all to us.
        if (typeof event === "string" && /^(\*|[a-z][a-z_]{1,60})$/.test(event)) return event;
        throw invalidHook({ field: "events", code: "invalid" });
      }),
    ),
  ];
}

function objectIn(text: string): Fields {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ApiFault(400, "Problems parsing JSON", { cause });
  }
  if (isObject(value)) return value;
  throw new ApiFault(400, "Body should be a JSON object");
}

/** A 422 as the service words it for hooks; some faults name no field. */
export function invalidHook({ field, code, message }: Partial<FieldFault> & Pick<FieldFault, "code">): ApiFault {
  const fault = { resource: "Hook", code, ...ifGiven("field", field), ...ifGiven("message", message) };
  return new ApiFault(422, "Validation Failed", { errors: [fault] });
}

function ifGiven<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  // No type can say that an object with a computed key has exactly that key.
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value };
}

import { addressFault, hostOf } from "../../../events/address-guard.ts";
import { EVENT_NAMES } from "../../../events/event-names.ts";
import type { TargetConfig } from "../../../events/target.ts";
import { type Fields, isObject, type Json } from "../../../json.ts";
import type { Call } from "../../call/call.ts";
import { ApiFault, type FieldFault } from "../../dialect/fault.ts";
import { prefers } from "../../dialect/preferences.ts";
import { objectIn } from "../../dialect/sent.ts";

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
  const body = hookObject(call.body);
  const { name, active, events, add_events, remove_events, config } = body;
  if (name !== undefined && name !== "web") throw invalidHook({ field: "name", code: "invalid" });
  if (active !== undefined && typeof active !== "boolean")
    throw new ApiFault(422, `Invalid request.\n\nFor 'properties/active', ${shortly(active)} is not a boolean.`);
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
  return readConfig(call, hookObject(call.body === "" ? "{}" : call.body));
}

/** Far beyond what clients send: an address, a secret and the name of every event. Longer bodies are not parsed. */
const MOST_BODY_LENGTH = 32_768;

function hookObject(text: string): Fields {
  if (text.length > MOST_BODY_LENGTH) throw new ApiFault(413, "Request Entity Too Large");
  return objectIn(text);
}

/** What browsers and proxies take, roughly. */
const MOST_URL_LENGTH = 2_048;
/** The service documents no limit. Clients make secrets of 20 to 64 characters. */
const MOST_SECRET_LENGTH = 2_048;
const MOST_SHOWN = 100;

/** The keys of a config. `rewrite_urls` is our own: "1" makes addresses of the API lead to the mirror. */
const CONFIG_KEYS: readonly string[] = ["url", "content_type", "secret", "insecure_ssl", "rewrite_urls"];

function readConfig({ ctx, api, headers }: Call, config: Fields): Partial<TargetConfig> {
  const odd = Object.keys(config).find((key) => !CONFIG_KEYS.includes(key));
  if (odd !== undefined) throw invalidHook({ code: "custom", message: `Invalid config attribute: ${odd}` });
  const { url, content_type, secret, insecure_ssl, rewrite_urls } = config;
  if (url !== undefined) requireUrl(ctx.config.targetsAllowed, url);
  if (content_type !== undefined && content_type !== "json" && content_type !== "form")
    throw invalidHook({ field: "content_type", code: "invalid" });
  if (secret !== undefined && secret !== null && (typeof secret !== "string" || secret.length > MOST_SECRET_LENGTH))
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
  const fault = typeof url === "string" && url.length <= MOST_URL_LENGTH ? addressFault(allowed, url) : "malformed";
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
    throw new ApiFault(422, `Invalid request.\n\nFor 'properties/${field}', ${shortly(value)} is not an array.`);
  const names = [...new Set(value)];
  const isKnown = (event: Json): event is string =>
    typeof event === "string" && (event === "*" || EVENT_NAMES.has(event));
  if (!names.every(isKnown)) throw invalidHook({ field: "events", code: "invalid" });
  return names;
}

/** A value for an error's text, which must not be as long as the request. */
function shortly(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
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

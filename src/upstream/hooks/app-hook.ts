import { type Fields, numberOf, objectOf, textOf, textsOf } from "../../json.ts";
import { UpstreamRefusedError } from "../protocol/errors.ts";
import type { Upstream } from "../protocol/upstream.ts";
import { hookRefusal } from "./hooks.ts";

/** The list of the App's deliveries, for all its installations. */
export const APP_DELIVERIES = "/app/hook/deliveries";

/** The App as upstream shows it to itself. */
export interface AppAtUpstream {
  id: number;
  slug: string;
  name: string;
  /** The account that owns it. */
  owner: string;
  /** The rights that the App asks accounts for: name to read, write or admin. */
  permissions: Record<string, string>;
  /** The events that the App asked for. Events of its installations come in any case. */
  events: string[];
}

/** The App's one webhook, for all its installations. */
export interface AppHook {
  url: string;
  hasSecret: boolean;
}

/** @throws UpstreamRefusedError when upstream shows no such App */
export async function readApp(upstream: Pick<Upstream, "get">): Promise<AppAtUpstream> {
  const app = await readOwn(upstream, "/app");
  const id = numberOf(app.id) ?? 0;
  const owner = objectOf(app.owner);
  const permissions = Object.entries(objectOf(app.permissions)).map(([name, level]) => [name, String(level)]);
  return {
    id,
    slug: textOf(app.slug) ?? String(id),
    name: textOf(app.name) ?? "",
    owner: textOf(owner.login) ?? textOf(owner.slug) ?? "?",
    permissions: Object.fromEntries(permissions),
    events: textsOf(app.events),
  };
}

/** @throws UpstreamRefusedError when the App has no webhook (upstream then answers 404) */
export async function readAppHook(upstream: Pick<Upstream, "get">): Promise<AppHook> {
  const { url, secret } = await readOwn(upstream, "/app/hook/config");
  return { url: textOf(url) ?? "", hasSecret: Boolean(secret) };
}

/** Makes the App's webhook send there, signed with the secret. @throws UpstreamRefusedError, without the secret */
export async function writeAppHook(
  upstream: Pick<Upstream, "write">,
  { url, secret }: { url: string; secret: string },
): Promise<void> {
  const path = "/app/hook/config";
  const body = JSON.stringify({ url, secret, content_type: "json", insecure_ssl: "0" });
  const answer = await upstream.write({ method: "PATCH", path, body });
  if (answer.status !== 200) throw hookRefusal(answer, path, secret);
}

async function readOwn(upstream: Pick<Upstream, "get">, path: string): Promise<Fields> {
  const answer = await upstream.get(path, { priority: "caller" });
  if (answer.kind === "ok") return objectOf(answer.body);
  throw new UpstreamRefusedError(
    answer.kind === "missing" ? answer.status : 301,
    `${answer.kind === "missing" ? answer.message : "moved"} (${path}: upstream shows the App no such thing)`,
    null,
  );
}

/**
 * Apps that are made by a manifest: a form that a person's browser posts to the service's pages, a redirection with a
 * code, and the code's conversion to the App with its secrets. Once, within an hour.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { App, Apps } from "./apps.ts";
import { isJsonObject } from "./json.ts";
import type { Permissions } from "./permissions.ts";
import { readText } from "./request-text.ts";
import type { World } from "./world.ts";

/** What a code is exchanged for. */
export interface NewlyMade {
  readonly app: App;
  readonly clientSecret: string;
  readonly webhookSecret: string | null;
  readonly pem: string;
}

interface Made {
  readonly world: World;
  readonly apps: Apps;
  /** Whether addresses of this machine are refused, as the service refuses them. */
  readonly refuseLocalHooks: boolean;
}

const LIFETIME_MS = 3_600_000; // GitHub docs: within an hour.
const PAGE = /^\/(?:organizations\/([^/]+)\/)?settings\/apps\/new$/;

export class Manifests {
  readonly #service: Made;
  readonly #byCode = new Map<string, { made: NewlyMade; at: number }>();

  constructor(service: Made) {
    this.#service = service;
  }

  /** Whether it is the page that takes manifests. */
  isPage(request: IncomingMessage): boolean {
    return PAGE.test(pathOf(request));
  }

  /** As if the person, who is signed in, had looked at the page and pressed its one button. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return refused(response, 404, "Not Found");
    const form = new URLSearchParams((await readText(request)) ?? "");
    try {
      const organization = PAGE.exec(pathOf(request))?.[1];
      const { code, redirectUrl } = this.#make(form.get("manifest") ?? "", organization);
      const target = new URL(redirectUrl);
      target.searchParams.set("code", code);
      const state = new URL(request.url ?? "/", "http://localhost").searchParams.get("state");
      if (state !== null) target.searchParams.set("state", state);
      response.writeHead(302, { Location: target.href }).end();
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      refused(response, 422, error.message);
    }
  }

  /** Undefined: there is no such code, it was used, or it is too old. */
  take(code: string): NewlyMade | undefined {
    const found = this.#byCode.get(code);
    this.#byCode.delete(code);
    return found && this.#service.world.clock.now() - found.at < LIFETIME_MS ? found.made : undefined;
  }

  #make(text: string, organization: string | undefined): { code: string; redirectUrl: string } {
    const { world, apps } = this.#service;
    const manifest = parsed(text);
    const name = textOf(manifest, "name") ?? `app-${world.random.hex(6)}`;
    if (textOf(manifest, "url") === undefined) throw new ManifestError("Url can't be blank");
    const redirectUrl = textOf(manifest, "redirect_url");
    if (redirectUrl === undefined || !URL.canParse(redirectUrl)) throw new ManifestError("Redirect url is invalid");
    const hook = this.#hookOf(manifest);
    const webhookSecret = hook && world.random.hex(40);
    const owner = organization ?? this.#person();
    if (organization !== undefined && world.userByLogin(organization)?.type !== "Organization")
      throw new ManifestError(`There is no organization ${organization}`);
    const slug = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
    if ([...apps.byId.values()].some((app) => app.slug === slug))
      throw new ManifestError("Name has already been taken");
    const { app, privateKey } = apps.create({
      slug,
      name,
      ...(owner !== undefined && { owner }),
      permissions: permissionsOf(manifest),
      events: hook ? eventsOf(manifest) : [],
      ...(hook && { webhook: { url: hook, secret: webhookSecret ?? "" } }),
    });
    const code = world.random.hex(40);
    const made = { app, clientSecret: world.random.hex(40), webhookSecret, pem: privateKey ?? "" };
    this.#byCode.set(code, { made, at: world.clock.now() });
    return { code, redirectUrl };
  }

  /** Without hook_attributes the App has no webhook. */
  #hookOf({ hook_attributes: attributes }: Manifest): string | null {
    if (attributes === undefined) return null;
    const url = isJsonObject(attributes) ? textOf(attributes, "url") : undefined;
    if (url === undefined || !URL.canParse(url)) throw new ManifestError("Hook url is invalid");
    const { hostname } = new URL(url);
    // Also with `active: false`.
    if (this.#service.refuseLocalHooks && /^(127\.|localhost$|\[::1\]$)/.test(hostname))
      throw new ManifestError(
        `Hook url is not supported because it isn't reachable over the public Internet (${hostname})`,
      );
    return url;
  }

  /** Who is signed in: the first of all people. */
  #person(): string | undefined {
    return [...this.#service.world.users.values()].find(({ type }) => type === "User")?.login;
  }
}

type Manifest = Readonly<Record<string, unknown>>;

class ManifestError extends Error {
  override name = "ManifestError";
}

function parsed(text: string): Manifest {
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new ManifestError("The manifest is no JSON object");
}

function textOf(manifest: Manifest, name: string): string | undefined {
  const value = manifest[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function permissionsOf({ default_permissions: wanted }: Manifest): Permissions {
  if (wanted === undefined) return {};
  const isLevel = (value: unknown): value is "read" | "write" => value === "read" || value === "write";
  if (!isJsonObject(wanted)) throw new ManifestError("Default permissions are invalid");
  const entries = Object.entries(wanted);
  const wrong = entries.find(([, level]) => !isLevel(level));
  if (wrong) throw new ManifestError(`Default permission ${wrong[0]} is invalid`);
  return Object.fromEntries(entries.filter((entry): entry is [string, "read" | "write"] => isLevel(entry[1])));
}

function eventsOf({ default_events: wanted = [] }: Manifest): string[] {
  if (!Array.isArray(wanted)) throw new ManifestError("Default events are invalid");
  return wanted.map(String);
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "/").split("?")[0] ?? "";
}

function refused(response: ServerResponse, status: number, reason: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(reason);
}

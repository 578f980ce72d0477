/** A request of the public interface while it is answered. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { appCaller, type Bucket, type Caller, callerOf } from "../quota/quota.ts";
import type { Service } from "../rest/call.ts";
import { newRequestId } from "../rest/headers.ts";
import { credentialOf, mediaOf, versionOf } from "../rest/negotiation.ts";
import { openView, type View } from "../views/view.ts";
import { roleOf } from "../world/access.ts";
import { type App, covers } from "../world/apps.ts";
import type { Needed } from "../world/permissions.ts";
import type { Repository, RepositoryRole } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import type { Token } from "../world/tokens.ts";
import { appOfJwt, looksLikeJwt, UNDECODABLE } from "./app-jwt.ts";

/** What is known so far of a request under way; the answer's headers and the meter need it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** Below `/api/v3`, not decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly view: View;
  readonly token: Token | null;
  /** Whose JWT it is; or what is wrong with the JWT. Null: none was sent. */
  readonly app: App | Refusal | null;
  readonly caller: Caller;
  readonly requestId: string;
  readonly mediaName: string;
  readonly file: "diff" | "patch" | null;
  bucket: Bucket;
  route: string;
  docs: string;
  /** What the route takes, for the headers that tell it. Null: no route, or one for Apps. */
  accepted: { readonly permissions: string | null; readonly scopes: string } | null;
  charged: number;
  points: number;
  limited: "primary" | "secondary" | null;
  /** Whether the version that was asked for has been read: then the answer names it. */
  hasVersion: boolean;
  /** Whether no route answers; set when routes are looked for. */
  isUnrouted: boolean;
  /** Set when a fault cuts the answer short. */
  truncated: boolean;
}

/** Reads what the request says of itself; `htmlUrl` and `ownUrl` are the bases of addresses. */
export function openExchange(
  service: Service,
  request: IncomingMessage,
  response: ServerResponse,
  base: { readonly htmlUrl: string; readonly ownUrl: string },
): Exchange {
  const { world, tokens } = service;
  const { headers } = request;
  const host = headers.host && /^[\w.:[\]-]+$/.test(headers.host) ? `http://${headers.host}` : base.ownUrl;
  const [rawPath = "/", rawQuery = ""] = (request.url ?? "/").split(/\?(.*)/s);
  const prefix = /^\/api\/v3(?=\/|$)/.exec(rawPath)?.[0] ?? "";
  const path = rawPath === "/api/graphql" ? "/graphql" : rawPath.slice(prefix.length) || "/";
  const credential = credentialOf(headers.authorization);
  const token = credential ? (tokens.find(credential) ?? null) : null;
  const app = credential ? appOf(service, headers.authorization ?? "", credential) : null;
  const caller =
    app && !(app instanceof Refusal) ? appCaller(app) : callerOf(token, request.socket.remoteAddress ?? "127.0.0.1");
  const media = mediaOf(headers.accept);
  const role = (repository: Repository, needed?: Needed) =>
    roleOf(world, token, repository, needed) ?? (app ? roleOfApp(service, app, repository) : undefined);
  return {
    request,
    response,
    method: request.method ?? "GET",
    path,
    query: lastOfEach(new URLSearchParams(rawQuery)),
    view: openView({
      world,
      apiUrl: `${host}${prefix}`,
      htmlUrl: base.htmlUrl,
      version: versionOf(header(request, "x-github-api-version")) ?? "2022-11-28",
      bodyForm: media.bodyForm,
      nextIds: header(request, "x-github-next-global-id") === "1",
      roleOf: role,
      sees: (repository) => role(repository) !== undefined,
    }),
    token,
    app,
    caller,
    requestId: newRequestId(),
    mediaName: media.name,
    file: media.file,
    bucket: bucketOf(path),
    route: `${request.method} (unknown)`,
    docs: "https://docs.github.com/rest",
    accepted: null,
    charged: 0,
    points: 0,
    limited: null,
    hasVersion: true,
    isUnrouted: false,
    truncated: false,
  };
}

function bucketOf(path: string): Bucket {
  if (path === "/graphql") return "graphql";
  if (path.startsWith("/search/")) return "search";
  return path.startsWith("/app-manifests/") ? "integration_manifest" : "core";
}

/** GitHub docs: a JWT must be sent as `Bearer`. */
function appOf({ apps, world }: Service, authorization: string, credential: string): App | Refusal | null {
  if (!looksLikeJwt(credential)) return null;
  if (!/^bearer /i.test(authorization.trim())) return new Refusal(401, UNDECODABLE);
  return appOfJwt(apps, credential, world.clock.now());
}

/** An App knows of the repositories where it is installed. */
function roleOfApp({ apps }: Service, app: App | Refusal, repository: Repository): RepositoryRole | undefined {
  if (app instanceof Refusal) return undefined;
  return apps.of(app).some((installation) => covers(installation, repository)) ? "pull" : undefined;
}

export function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** The service is a Rack application, where the last of a repeated parameter counts. */
function lastOfEach(sent: URLSearchParams): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of sent) query.set(name, value);
  return query;
}

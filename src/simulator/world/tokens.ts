import { randomBytes, randomUUID } from "node:crypto";
import type { Apps, Installation } from "./apps.ts";
import { isOneOf } from "./json.ts";
import type { Permissions } from "./permissions.ts";
import type { Repository, RepositoryRole, User } from "./records.ts";
import type { World } from "./world.ts";

/** "app-user": what an App has of one of its users. */
type TokenKind = "classic" | "fine-grained" | "oauth" | "installation" | "actions" | "app-user";

/** What an installation token may do: never more than its installation may, at any moment. */
export interface Grant {
  readonly installation: Installation;
  /** Null: all that the installation covers. */
  readonly repositoryIds: ReadonlySet<number> | null;
  readonly permissions: Permissions;
  /** Requests an hour beyond the base; as the installation grows, so does this. */
  bonus(): number;
}

export interface Token {
  readonly value: string;
  readonly kind: TokenKind;
  /** The user whose quota it spends, and who acts. */
  readonly userId: number;
  /** Installation tokens spend the installation's quota and have no `/user`. */
  readonly installationId: number | null;
  /** Only of classic and OAuth tokens: without `repo` they see public data alone. */
  readonly scopes: readonly string[];
  /**
   * What a fine-grained or Actions token may do in the repositories given to it. Null: its role there alone decides.
   */
  readonly permissions: Permissions | null;
  /** The resource owner of a fine-grained token. Null: any. */
  readonly ownerId: number | null;
  /** Requests an hour (core) and points an hour (graphql); shared by the user's tokens unless set here. */
  readonly limit: number | null;
  /**
   * What it may see of private repositories and write to: what its account may, or just these, or all there is.
   * Public ones are always seen.
   */
  readonly repositoryIds: ReadonlySet<number> | "account" | "all";
  readonly write: boolean;
  /** Only of tokens that an App asked for. */
  readonly grant: Grant | null;
  /** Only of an App's user tokens: where the App is installed. They do what both the App and the user may. */
  readonly installations: (() => readonly Installation[]) | null;
  /** Epoch milliseconds. */
  readonly expiresAt: number | null;
}

export interface TokenInput {
  readonly token?: string;
  readonly kind?: TokenKind;
  /** An account that does not exist yet is made. */
  readonly login: string;
  readonly scopes?: readonly string[];
  readonly limit?: number;
  /** Absent: what the account itself may see. "all" of a token with a resource owner: all that the owner has. */
  readonly repositories?: "all" | readonly string[];
  /**
   * Of fine-grained and Actions tokens; metadata is always read. A fine-grained token without any is limited by its
   * role alone. An Actions token needs them, and exactly one repository.
   */
  readonly permissions?: Permissions;
  /**
   * Login of a fine-grained token's resource owner. Default, with permissions: who owns `repositories`, or the account.
   */
  readonly owner?: string;
  /** Id or client id of the App that an "app-user" token belongs to. */
  readonly app?: number | string;
  readonly write?: boolean;
  readonly installationId?: number;
  readonly expiresAt?: number;
}

const PREFIXES: Readonly<Record<TokenKind, string>> = {
  classic: "ghp_",
  "fine-grained": "github_pat_",
  oauth: "gho_",
  installation: "ghs_",
  actions: "ghs_",
  "app-user": "ghu_",
};

const INSTALLATION_TOKEN_SECONDS = 3_600;

/** The credentials that the simulated service knows, and what each may see. */
export class Tokens {
  readonly #world: World;
  readonly #apps: Apps;
  readonly #byValue = new Map<string, Token>();
  /** Deleted tokens, by whose they were: the service counts how often they are tried. */
  readonly #gone = new Map<string, number>();

  constructor(world: World, apps: Apps) {
    this.#world = world;
    this.#apps = apps;
  }

  /** Throws a sentence when the value is in use, or the input makes no sense for the kind. */
  create(input: TokenInput): Token {
    const kind = input.kind ?? "classic";
    const value = input.token ?? newValue(kind);
    if (this.#byValue.has(value)) throw new Error("This token exists already");
    const named = this.#named(input.repositories);
    checkPermissions(kind, input.permissions);
    if (kind === "actions" && (named.length !== 1 || !input.permissions))
      throw new Error("An Actions token needs its one repository and its permissions");
    const user = this.#world.userByLogin(input.login) ?? this.#world.addUser({ login: input.login });
    const token: Token = {
      value,
      kind,
      userId: user.id,
      installationId: input.installationId ?? null,
      scopes: kind === "app-user" ? [] : (input.scopes ?? ["repo", "user"]),
      permissions: input.permissions ? { ...input.permissions, metadata: "read" } : null,
      ownerId: kind === "fine-grained" ? this.#ownerOf(input, named, user) : null,
      limit: input.limit ?? null,
      repositoryIds: idsOf(input.repositories, named),
      write: input.write ?? true,
      grant: null,
      installations: kind === "app-user" ? this.#installationsOf(input.app) : null,
      expiresAt: input.expiresAt ?? null,
    };
    this.#byValue.set(value, token);
    return token;
  }

  /** GitHub: installation tokens live for an hour. `long`: in the form `ghs_<app id>_<JWT>`. */
  mint(grant: Grant, long: boolean): Token {
    const { app, id } = grant.installation;
    const now = Math.floor(this.#world.clock.now() / 1_000);
    const token: Token = {
      value: long ? longValue(app.id, id, now) : newValue("installation"),
      kind: "installation",
      userId: app.botId,
      installationId: id,
      scopes: [],
      permissions: null,
      ownerId: null,
      limit: null,
      repositoryIds: new Set(),
      write: true,
      grant,
      installations: null,
      expiresAt: (now + INSTALLATION_TOKEN_SECONDS) * 1_000,
    };
    this.#byValue.set(token.value, token);
    return token;
  }

  /** The same token under another value (default: a new one of its kind); the old value is unknown from now on. */
  rotate(value: string, to?: string): Token {
    const token = this.#known(value);
    const rotated = { ...token, value: to ?? newValue(token.kind) };
    if (this.#byValue.has(rotated.value)) throw new Error("This token exists already");
    this.#byValue.delete(value);
    this.#byValue.set(rotated.value, rotated);
    return rotated;
  }

  /** From `at` on (epoch milliseconds; default: now) it is refused. */
  expire(value: string, at: number = this.#world.clock.now()): Token {
    const expired = { ...this.#known(value), expiresAt: at };
    this.#byValue.set(value, expired);
    return expired;
  }

  /** Replaces what a fine-grained or Actions token may do, from now on. */
  permit(value: string, permissions: Permissions): Token {
    const token = this.#known(value);
    checkPermissions(token.kind, permissions);
    const permitted = { ...token, permissions: { ...permissions, metadata: "read" as const } };
    this.#byValue.set(value, permitted);
    return permitted;
  }

  #known(value: string): Token {
    const token = this.#byValue.get(value);
    if (!token) throw new Error("There is no such token");
    return token;
  }

  #named(repositories: TokenInput["repositories"]): Repository[] {
    if (repositories === undefined || repositories === "all") return [];
    return repositories.map((fullName) => {
      const [owner = "", name = ""] = fullName.split("/");
      const found = this.#world.repositoryByName(owner, name);
      if (!found) throw new Error(`There is no repository ${fullName}`);
      return found.repository;
    });
  }

  #installationsOf(issuer: TokenInput["app"]): () => readonly Installation[] {
    const app = issuer === undefined ? undefined : this.#apps.byIssuer(issuer);
    if (!app) throw new Error(`There is no App ${issuer}`);
    return () => this.#apps.of(app);
  }

  #ownerOf({ owner, permissions }: TokenInput, named: readonly Repository[], user: User): number | null {
    if (owner === undefined && !permissions) return null;
    const account = owner === undefined ? undefined : this.#world.userByLogin(owner);
    if (owner !== undefined && !account) throw new Error(`There is no account ${owner}`);
    const ownerId = account?.id ?? named[0]?.ownerId ?? user.id;
    if (named.some((repository) => repository.ownerId !== ownerId))
      throw new Error("A fine-grained token has one resource owner: the owner of all its repositories");
    return ownerId;
  }

  /** Undefined for unknown, expired and orphaned tokens alike. */
  find(value: string): Token | undefined {
    const token = this.#byValue.get(value);
    if (!token || !this.#world.users.has(token.userId) || token.grant?.installation.deleted) return undefined;
    return token.expiresAt !== null && token.expiresAt <= this.#world.clock.now() ? undefined : token;
  }

  delete(value: string): boolean {
    const token = this.#byValue.get(value);
    if (token) this.#gone.set(value, token.userId);
    return this.#byValue.delete(value);
  }

  /** The owner of a token that is gone. */
  formerOwner(value: string): number | undefined {
    return this.#byValue.has(value) ? undefined : this.#gone.get(value);
  }

  userOf(token: Token): User {
    return this.#world.user(token.userId);
  }
}

function idsOf(given: TokenInput["repositories"], named: readonly Repository[]): Token["repositoryIds"] {
  if (given === undefined) return "account";
  return given === "all" ? "all" : new Set(named.map(({ id }) => id));
}

/** A name or level that nobody has would silently grant nothing. */
function checkPermissions(kind: TokenKind, permissions: Permissions | undefined): void {
  if (permissions === undefined) return;
  if (kind !== "fine-grained" && kind !== "actions") throw new Error(`A token of kind ${kind} has no permissions`);
  for (const [name, level] of Object.entries(permissions)) {
    if (!/^[a-z_]+$/.test(name) || !isOneOf(["read", "write", "admin"], level))
      throw new Error(`There is no permission ${name}: ${level}`);
  }
}

function newValue(kind: TokenKind): string {
  return `${PREFIXES[kind]}${randomBytes(27).toString("base64url").replaceAll(/[-_]/g, "0")}`;
}

/** `ghs_<app id>_<JWT>`: only the service can read it. About 520 characters. */
function longValue(appId: number, installationId: number, now: number): string {
  const part = (json: object) => Buffer.from(JSON.stringify(json)).toString("base64url");
  const claims = { sub: String(installationId), iat: now, exp: now + INSTALLATION_TOKEN_SECONDS, jti: randomUUID() };
  const signature = randomBytes(256).toString("base64url");
  return `ghs_${appId}_${part({ alg: "RS256", typ: "JWT" })}.${part(claims)}.${signature}`;
}

/** Apps and Actions call as an installation, and as nobody's account. */
export function isIntegration({ kind }: Token): boolean {
  return kind === "installation" || kind === "actions";
}

/** Who is refused in "Resource not accessible by …". */
export function calledBy(token: Token): "integration" | "personal access token" {
  return isIntegration(token) || token.installations ? "integration" : "personal access token";
}

/** Scopes limit it, and not permissions. */
export function hasScopes({ kind }: Token): boolean {
  return kind === "classic" || kind === "oauth";
}

export function mayPush(role: RepositoryRole | undefined): boolean {
  return role === "push" || role === "maintain" || role === "admin";
}

export function mayTriage(role: RepositoryRole | undefined): boolean {
  return role === "triage" || mayPush(role);
}

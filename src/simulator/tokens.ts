import { randomBytes, randomUUID } from "node:crypto";
import { covers, type Installation } from "./apps.ts";
import { has, type Permissions } from "./permissions.ts";
import type { Repository, RepositoryRole, User } from "./records.ts";
import type { World } from "./world.ts";

type TokenKind = "classic" | "fine-grained" | "oauth" | "installation";

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
  readonly scopes: readonly string[];
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
  /** Absent: what the account itself may see. */
  readonly repositories?: "all" | readonly string[];
  readonly write?: boolean;
  readonly installationId?: number;
  readonly expiresAt?: number;
}

const PREFIXES: Readonly<Record<TokenKind, string>> = {
  classic: "ghp_",
  "fine-grained": "github_pat_",
  oauth: "gho_",
  installation: "ghs_",
};

const INSTALLATION_TOKEN_SECONDS = 3_600;

const RANK: readonly RepositoryRole[] = ["pull", "triage", "push", "maintain", "admin"];

/** The credentials that the simulated service knows, and what each may see. */
export class Tokens {
  readonly #world: World;
  readonly #byValue = new Map<string, Token>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Throws when a repository is named that does not exist, or the value is in use. */
  create(input: TokenInput): Token {
    const kind = input.kind ?? "classic";
    const value = input.token ?? newValue(kind);
    if (this.#byValue.has(value)) throw new Error("This token exists already");
    const user = this.#world.userByLogin(input.login) ?? this.#world.addUser({ login: input.login });
    const token: Token = {
      value,
      kind,
      userId: user.id,
      installationId: input.installationId ?? null,
      scopes: input.scopes ?? ["repo", "user"],
      limit: input.limit ?? null,
      repositoryIds: this.#ids(input.repositories),
      write: input.write ?? true,
      grant: null,
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
      limit: null,
      repositoryIds: new Set(),
      write: true,
      grant,
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

  #known(value: string): Token {
    const token = this.#byValue.get(value);
    if (!token) throw new Error("There is no such token");
    return token;
  }

  #ids(repositories: "all" | readonly string[] | undefined): Token["repositoryIds"] {
    if (repositories === undefined) return "account";
    if (repositories === "all") return "all";
    return new Set(
      repositories.map((fullName) => {
        const [owner = "", name = ""] = fullName.split("/");
        const found = this.#world.repositoryByName(owner, name);
        if (!found) throw new Error(`There is no repository ${fullName}`);
        return found.repository.id;
      }),
    );
  }

  /** Undefined for unknown, expired and orphaned tokens alike. */
  find(value: string): Token | undefined {
    const token = this.#byValue.get(value);
    if (!token || !this.#world.users.has(token.userId) || token.grant?.installation.deleted) return undefined;
    return token.expiresAt !== null && token.expiresAt <= this.#world.clock.now() ? undefined : token;
  }

  delete(value: string): boolean {
    return this.#byValue.delete(value);
  }

  userOf(token: Token): User {
    return this.#world.user(token.userId);
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

/** Whether the token's installation, and the token itself, were given the repository. */
export function granted({ installation, repositoryIds }: Grant, repository: Repository): boolean {
  return covers(installation, repository) && (repositoryIds === null || repositoryIds.has(repository.id));
}

/** How an App's permissions look in the words of roles. */
function roleOfGrant({ permissions }: Grant): RepositoryRole {
  if (has(permissions, "administration", "write")) return "admin";
  if (has(permissions, "contents", "write")) return "push";
  return has(permissions, "issues", "write") || has(permissions, "pull_requests", "write") ? "triage" : "pull";
}

/** What a caller is to a repository: undefined when it may not even know of it. Anonymous callers have no token. */
export function roleOf(world: World, token: Token | null, repository: Repository): RepositoryRole | undefined {
  const open = repository.visibility === "public" ? "pull" : undefined;
  if (!token) return open;
  if (token.grant) return granted(token.grant, repository) ? roleOfGrant(token.grant) : open;
  const role = given(world, token, repository) ?? open;
  if (!role) return undefined;
  return token.write || RANK.indexOf(role) < RANK.indexOf("push") ? role : "pull";
}

function given(world: World, token: Token, repository: Repository): RepositoryRole | undefined {
  if (token.repositoryIds === "account") return roleOfUser(world, token.userId, repository);
  // A token that was given a repository may work in it, apart from its account's rights.
  return token.repositoryIds === "all" || token.repositoryIds.has(repository.id) ? "admin" : undefined;
}

function roleOfUser(world: World, userId: number, repository: Repository): RepositoryRole | undefined {
  if (repository.ownerId === userId) return "admin";
  if (world.user(repository.ownerId).memberIds.includes(userId)) return "admin";
  return repository.collaborators.get(userId);
}

export function mayPush(role: RepositoryRole | undefined): boolean {
  return role === "push" || role === "maintain" || role === "admin";
}

export function mayTriage(role: RepositoryRole | undefined): boolean {
  return role === "triage" || mayPush(role);
}

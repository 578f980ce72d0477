import { randomBytes } from "node:crypto";
import type { Repository, RepositoryRole, User } from "./records.ts";
import type { World } from "./world.ts";

type TokenKind = "classic" | "fine-grained" | "oauth" | "installation";

export interface Token {
  readonly value: string;
  readonly kind: TokenKind;
  /** Whose quota it spends and as whom it acts. */
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
    const value =
      input.token ??
      `${PREFIXES[kind]}${randomBytes(24).toString("base64url").replaceAll(/[-_]/g, "0").padEnd(36, "x")}`;
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
      expiresAt: input.expiresAt ?? null,
    };
    this.#byValue.set(value, token);
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
    if (!token || !this.#world.users.has(token.userId)) return undefined;
    return token.expiresAt !== null && token.expiresAt <= this.#world.clock.now() ? undefined : token;
  }

  delete(value: string): boolean {
    return this.#byValue.delete(value);
  }

  userOf(token: Token): User {
    return this.#world.user(token.userId);
  }
}

/** What a caller is to a repository: undefined when it may not even know of it. Anonymous callers have no token. */
export function roleOf(world: World, token: Token | null, repository: Repository): RepositoryRole | undefined {
  const open = repository.visibility === "public" ? "pull" : undefined;
  if (!token) return open;
  const role = granted(world, token, repository) ?? open;
  if (!role) return undefined;
  return token.write || RANK.indexOf(role) < RANK.indexOf("push") ? role : "pull";
}

function granted(world: World, token: Token, repository: Repository): RepositoryRole | undefined {
  if (token.repositoryIds === "account") return roleOfUser(world, token.userId, repository);
  // A token that was given a repository may work in it, whoever its account is.
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

import { createHash } from "node:crypto";
import type { Context } from "../../context.ts";
import type { Sight } from "../../mirror/read/sight.ts";
import type { Fields } from "../../mirror/store/template.ts";
import type { OwnRequest } from "../../upstream/client/on-behalf.ts";
import type { Received } from "../../upstream/client/transport.ts";
import type { Upstream, WriteRequest } from "../../upstream/client/upstream.ts";
import { ApiFault } from "../dialect/fault.ts";
import { type ApiToken, ApiTokens, hashOf } from "./tokens.ts";
import { type RepositoryPermission, type UpstreamCaller, UpstreamCallers } from "./upstream-callers.ts";

/** Somebody with a token, as far as their quota is concerned. */
export interface Payer {
  kind: "user";
  /** Names the quota that they draw on: their user's, or one of their token's own. */
  quotaName: string;
  /** Requests, and points, an hour of that quota; 0: no limit. Null: what the settings say. */
  hourlyLimit: number | null;
}

/** Who showed a token before. */
export interface Recalled extends Payer {
  /** See `classOf`. */
  class: string;
}

/** Names a token that was shown, without telling it: one of ours, or one of upstream's. */
export interface Credential {
  of: "own" | "upstream";
  hash: string;
}

/** Somebody with a token. */
export interface User extends Payer {
  /** The account that they answer as. */
  userId: number;
  /** By what they were known. */
  by:
    | { of: "own"; token: ApiToken }
    | {
        of: "upstream";
        known: UpstreamCaller;
        write: Upstream["write"];
        /** One request with their own token, at the cost of their own quota, answered as upstream answers it. */
        forward: (request: Omit<OwnRequest, "token">) => Promise<Received>;
        mutate: (query: string, variables: Fields) => Promise<Received>;
      };
}

/** Who is asking. */
export type Caller = User | Stranger;

/** Somebody without a token, who is told from others by their address. */
export interface Stranger {
  kind: "anonymous";
  address: string;
}

/** Knows callers by our own tokens and by upstream's, as `AUTH_MODE` allows. */
export class Callers {
  readonly #mode: Context["config"]["authMode"];
  readonly #tokens: ApiTokens;
  readonly #upstream: UpstreamCallers;
  readonly #recalled = new WeakMap<ApiToken | UpstreamCaller, Recalled>();

  constructor(ctx: Pick<Context, "config" | "db" | "clock" | "log">) {
    this.#mode = ctx.config.authMode;
    this.#tokens = new ApiTokens(ctx);
    this.#upstream = new UpstreamCallers(ctx);
  }

  /**
   * Knows a caller by `Authorization: Bearer T`, `token T` or Basic with the token as the password.
   * @throws ApiFault 401 for a credential that is none, 503 when upstream cannot be asked about it
   */
  async identify({ authorization, address }: { authorization: string | undefined; address: string }): Promise<Caller> {
    if (authorization === undefined) return { kind: "anonymous", address };
    const text = credential(authorization);
    const user = text === null ? null : await this.#user(text);
    if (!user) throw new ApiFault(401, "Bad credentials", { documentationUrl: "https://docs.github.com/rest" });
    return user;
  }

  /** What a caller is recognised by who shows the same again; null for what is no credential. */
  credentialOf(authorization: string): Credential | null {
    const text = credential(authorization);
    return text === null ? null : { of: text.startsWith("tain_") ? "own" : "upstream", hash: hashOf(text) };
  }

  /** Who that is, as far as it is known without asking; null: ask. */
  recall({ of, hash }: Credential): Recalled | null {
    const known =
      of === "own"
        ? this.#mode !== "upstream" && this.#tokens.recall(hash)
        : this.#mode !== "tokens" && this.#upstream.recall(hash);
    if (!known) return null;
    let recalled = this.#recalled.get(known);
    if (!recalled) {
      const payer = "rights" in known ? payerBy(known) : payerOf(known);
      recalled = { ...payer, class: classBy(of, known) };
      this.#recalled.set(known, recalled);
    }
    return recalled;
  }

  async close(): Promise<void> {
    await Promise.all([this.#tokens.close(), this.#upstream.close()]);
  }

  async #user(text: string): Promise<User | null> {
    // Ours never go to upstream, whatever the mode.
    if (text.startsWith("tain_")) {
      const token = this.#mode === "upstream" ? null : await this.#tokens.find(text);
      if (!token) return null;
      return { ...payerOf(token), userId: token.userId, by: { of: "own", token } };
    }
    const known = this.#mode === "tokens" ? null : await this.#upstream.find(text);
    if (!known) return null;
    const write = (request: WriteRequest) => this.#upstream.write(text, request);
    const forward = (request: Omit<OwnRequest, "token">) => this.#upstream.forward({ ...request, token: text });
    const mutate = (query: string, variables: Fields) => this.#upstream.mutate(text, query, variables);
    const by = { of: "upstream", known, write, forward, mutate } as const;
    return { ...payerBy(known), userId: known.userId, by };
  }
}

function payerOf({ id, userId, hourlyLimit }: ApiToken): Payer {
  return { kind: "user", quotaName: hourlyLimit === null ? `u${userId}` : `t${id}`, hourlyLimit };
}

function payerBy({ userId }: UpstreamCaller): Payer {
  return { kind: "user", quotaName: `u${userId}`, hourlyLimit: null };
}

/** What of the mirror a caller sees beside what is public. */
export function sightOf(caller: Caller): Sight {
  if (caller.kind === "anonymous") return { privateRepositories: [] };
  return {
    privateRepositories: caller.by.of === "own" ? caller.by.token.repositories : [...caller.by.known.rights.keys()],
  };
}

const classes = new WeakMap<object, string>();

/** Callers of one class are shown the same of every repository. */
export function classOf(caller: Caller): string {
  if (caller.kind === "anonymous") return "";
  return caller.by.of === "own" ? classBy("own", caller.by.token) : classBy("upstream", caller.by.known);
}

function classBy(of: Credential["of"], known: ApiToken | UpstreamCaller): string {
  let text = classes.get(known);
  if (text === undefined) {
    const rights = "rights" in known ? [...known.rights] : [known.canWrite, known.repositories];
    text = createHash("sha256")
      .update(JSON.stringify([of, rights]))
      .digest("base64");
    classes.set(known, text);
  }
  return text;
}

/** Whether a caller's write to this repository is passed on. Upstream itself judges those who show a token of its own. */
export function mayWrite(caller: User, repositoryId: number): boolean {
  if (caller.by.of === "upstream") return true;
  const { canWrite, repositories } = caller.by.token;
  return canWrite && (repositories === "all" || repositories.includes(repositoryId));
}

/** Whether the caller may do in every repository what the mirror's own token may. */
export function hasMirrorsRights(caller: Caller): boolean {
  return (
    caller.kind === "user" &&
    caller.by.of === "own" &&
    caller.by.token.canWrite &&
    caller.by.token.repositories === "all"
  );
}

/** What a repository lets somebody do, as REST has it. */
export interface Permissions {
  admin: boolean;
  maintain: boolean;
  push: boolean;
  triage: boolean;
  pull: boolean;
}

const LEVELS: readonly RepositoryPermission[] = ["READ", "TRIAGE", "WRITE", "MAINTAIN", "ADMIN"];

/**
 * What the caller may do in a repository through this mirror; null where that is not known. `mirrors` is what upstream
 * lets the mirror's own token do, with which it does what our own tokens ask for.
 */
export function permissionsOf(caller: Caller, repositoryId: number, mirrors: Permissions | null): Permissions | null {
  if (caller.kind === "anonymous") return null;
  if (caller.by.of === "own") return mayWrite(caller, repositoryId) ? mirrors : permissions("READ");
  const known = caller.by.known.rights.get(repositoryId);
  return known === undefined ? null : permissions(known);
}

function permissions(level: RepositoryPermission): Permissions {
  const rank = LEVELS.indexOf(level);
  return { admin: rank >= 4, maintain: rank >= 3, push: rank >= 2, triage: rank >= 1, pull: true };
}

/** The token that the header holds; null for a form that holds none. Pure. */
function credential(authorization: string): string | null {
  const match = /^(\w+) +(\S+) *$/.exec(authorization);
  if (!match) return null;
  const [, scheme = "", text = ""] = match;
  switch (scheme.toLowerCase()) {
    case "bearer":
    case "token":
      return text;
    case "basic": {
      const [user = "", password = ""] = Buffer.from(text, "base64").toString().split(/:(.*)/s);
      // Scripts also put the token in the user's place, with `x-oauth-basic` or nothing as the password.
      return (password === "" || password === "x-oauth-basic" ? user : password) || null;
    }
    default:
      return null;
  }
}

import { Readable } from "node:stream";
import type { Config } from "../../config.ts";
import type { Context } from "../../context.ts";
import type { Fields } from "../../json.ts";
import { type Sight, wholeSight } from "../../mirror/read/sight.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import type { Forward } from "../../upstream/client/on-behalf.ts";
import type { Opened } from "../../upstream/client/opened.ts";
import type { Received } from "../../upstream/client/transport.ts";
import type { ReadAnswer, Upstream, WriteRequest } from "../../upstream/client/upstream.ts";
import { fingerprint } from "../../upstream/credentials/credentials.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";
import { Logins } from "./logins.ts";
import type { CallerQuota, Recognised, Stranger } from "./quota.ts";
import { type ApiToken, ApiTokens, hashOf } from "./tokens.ts";
import { type UpstreamCaller, UpstreamCallers } from "./upstream-callers.ts";
import type { AskedRepository, RepositoryPermission } from "./upstream-rights.ts";

/** A caller with a token. */
export interface User extends Recognised {
  /** The account that they answer as. */
  userId: number;
  /** The token that they showed, and what it allows. */
  by:
    | { of: "own"; token: ApiToken }
    | {
        of: "upstream";
        /** Names the token without revealing it. */
        fingerprint: string;
        known: UpstreamCaller;
        write: Upstream["write"];
        /**
         * Forwards one request with the caller's own token, at the cost of their own quota. The answer is upstream's.
         */
        forward: ForwardOwn;
        /** Reads one page with the caller's own token. Upstream may show it to them alone, so it must not be kept. */
        get: (path: string) => Promise<ReadAnswer>;
        mutate: (query: string, variables: Fields) => Promise<Received>;
        /** What upstream permits the caller in public repositories, as far as upstream can be asked. */
        publicRights: (repositories: readonly AskedRepository[]) => Promise<ReadonlyMap<number, RepositoryPermission>>;
      };
}

/** Forwards one request with a token that is already known here. The answer is upstream's. */
export type ForwardOwn = (request: Omit<Parameters<Forward>[0], "token">) => Promise<Opened>;

export type Caller = User | Stranger;

/** Knows callers by our own tokens and by upstream's, as `AUTH_MODE` allows. */
export class Callers {
  readonly #mode: Context["config"]["authMode"];
  readonly #upstreamUrl: string;
  /** Bounds what attempts with unknown credentials cost. */
  readonly logins: Logins;
  readonly #tokens: ApiTokens;
  readonly #upstream: UpstreamCallers;

  constructor(
    ctx: Pick<Context, "config" | "db" | "clock" | "random" | "log" | "metrics" | "tracing">,
    quota: CallerQuota,
  ) {
    this.#mode = ctx.config.authMode;
    this.#upstreamUrl = ctx.config.upstreamUrl;
    this.logins = new Logins(ctx, quota);
    this.#tokens = new ApiTokens(ctx);
    this.#upstream = new UpstreamCallers(ctx);
  }

  /**
   * Knows a caller by `Authorization: Bearer T`, `token T` or Basic with the token as the password.
   * @throws ApiFault 401 for an unknown or malformed credential; 403 for an unknown one, where its address has shown too
   *   many; 503 when upstream cannot be asked about it
   */
  async identify({ authorization, address }: { authorization: string | undefined; address: string }): Promise<Caller> {
    if (authorization === undefined) return { kind: "anonymous", address };
    const text = shownToken(authorization);
    const user = text === null ? null : await this.#user(text, address);
    if (!user) throw new ApiFault(401, "Bad credentials", { documentationUrl: REST_DOCS });
    return user;
  }

  /**
   * Forwards an App's question about itself, with the credential as it was shown. Null for any other request. Nobody is
   * asked whose the credential is, and no answer is kept. A credential that upstream rejects counts as a failed attempt
   * of the address.
   */
  asApp({ authorization, address, path }: { authorization: string; address: string; path: string }): ForwardOwn | null {
    const token = shownToken(authorization);
    if (this.#mode === "tokens" || token === null || token.startsWith("tain_")) return null;
    if (!isAppsQuestion(path, token) || !mayBeUpstreams(token, this.#upstreamUrl)) return null;
    return async (request) => {
      const ask = async () => await judged(await this.#upstream.upstream.forward({ ...request, token }));
      if (this.#upstream.recall(hashOf(token))) return (await ask()).answer;
      const { promise: answered, resolve } = Promise.withResolvers<Opened>();
      await this.logins.upstreams(address, async () => {
        const { isRejected, answer } = await ask();
        resolve(answer);
        return isRejected ? null : answer;
      });
      return await answered;
    };
  }

  /** A name for the credential, to recognise it when it is shown again; null if the header holds no credential. */
  credentialOf(authorization: string): Credential | null {
    const text = shownToken(authorization);
    return text === null ? null : { of: text.startsWith("tain_") ? "own" : "upstream", hash: hashOf(text) };
  }

  /** The user, as far as the credential is known without asking. Null: upstream or Postgres has to be asked. */
  recall({ of, hash }: Credential): Recognised | null {
    const known =
      of === "own"
        ? this.#mode !== "upstream" && this.#tokens.recall(hash)
        : this.#mode !== "tokens" && this.#upstream.recall(hash);
    return known ? known.payer : null;
  }

  /** What upstream permits in a public repository to a token of its own, as far as that is known without asking. */
  recallPublicRight({ of, hash }: Credential, repositoryId: number): RepositoryPermission | null {
    return of === "own" ? null : this.#upstream.publicRights.recall(hash, repositoryId);
  }

  async close(): Promise<void> {
    await Promise.all([this.#tokens.close(), this.#upstream.close()]);
  }

  async #user(text: string, address: string): Promise<User | null> {
    // Our own tokens never go to upstream, whatever the mode.
    if (text.startsWith("tain_")) {
      if (this.#mode === "upstream" || !isOfOurForm(text)) return null;
      const token = await this.#tokens.find(text, (ask) => this.logins.own(address, ask));
      if (!token) return null;
      return { ...token.payer, userId: token.userId, by: { of: "own", token } };
    }
    if (this.#mode === "tokens" || !mayBeUpstreams(text, this.#upstreamUrl)) return null;
    const known = await this.#upstream.find(text, (ask) => this.logins.upstreams(address, ask));
    if (!known) return null;
    const { upstream } = this.#upstream;
    const write = (request: WriteRequest) => upstream.write(text, request);
    const forward: ForwardOwn = (request) => upstream.forward({ ...request, token: text });
    const get = (path: string) => upstream.get(text, path);
    const mutate = (query: string, variables: Fields) => upstream.graphql({ token: text, query, variables });
    const publicRights = (repositories: readonly AskedRepository[]) =>
      this.#upstream.publicRights.find(text, repositories);
    const asThemselves = { write, forward, get, mutate, publicRights };
    const by = { of: "upstream", fingerprint: fingerprint(text), known, ...asThemselves } as const;
    return { ...known.payer, userId: known.userId, by };
  }
}

/** What of the mirror a caller sees beside what is public. */
export function sightOf(caller: Caller): Sight {
  if (caller.kind === "anonymous") return PUBLIC;
  return caller.by.of === "own" ? caller.by.token.sight : caller.by.known.sight;
}

const PUBLIC = wholeSight([]);

/** Callers of one class are shown the same of every repository. */
export function classOf(caller: Caller): string {
  return caller.kind === "anonymous" ? "" : caller.class;
}

// Credentials as callers show them. Pure.

/** Names a token that was shown, without telling it: one of ours, or one of upstream's. */
export interface Credential {
  of: "own" | "upstream";
  hash: string;
}

/** The token that the header holds; null for a form that holds none. */
function shownToken(authorization: string): string | null {
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

/** The form of the tokens that `tain token create` makes. */
const OURS = /^tain_[0-9A-Za-z]{40}$/;

function isOfOurForm(text: string): boolean {
  return OURS.test(text);
}

const GITHUB = "https://api.github.com";

/**
 * The forms of GitHub's tokens: those of the GitHub docs, "Token formats", and two older ones. The older ones are 40
 * hexadecimal digits, with or without `v1.` before them. Tokens of installations may hold a JWT. An App's own JWT has
 * no prefix.
 */
const GITHUBS =
  /^(gh[a-z]_[\w.-]{36,2048}|github_pat_\w{22,255}|(v1\.)?[0-9a-f]{40}|eyJ[\w-]{1,1024}\.[\w-]{1,2048}\.[\w-]{1,1024})$/;

/** What may stand behind `Bearer`, by RFC 6750. */
const ANYONES = /^[\w.~+/-]{1,2048}={0,2}$/;

/** Whether the text may be a token of upstream's. Enterprise servers and other upstreams have forms of their own. */
export function mayBeUpstreams(text: string, upstreamUrl: string): boolean {
  return (upstreamUrl === GITHUB ? GITHUBS : ANYONES).test(text);
}

// Questions of Apps about themselves go to upstream: the answers are about no account here, and hold tokens.

/** What takes an App's JWT. GitHub docs, "Endpoints available for GitHub App …". */
const BY_JWT =
  /^\/(app|marketplace_listing|(orgs|organizations|users|user|enterprises|repositories)\/[^/]+\/installation|repos\/[^/]+\/[^/]+\/installation)(\/|$)/;
/** What an installation asks about itself, by its own token. */
const BY_INSTALLATION = /^\/installation(\/|$)/;
/** An App's signature, in its compact form (RFC 7515). Tokens have a prefix. */
const JWT = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;

/** Whether this is asked as an App, and not as an account. Pure. */
function isAppsQuestion(path: string, token: string): boolean {
  return JWT.test(token) ? BY_JWT.test(path) : BY_INSTALLATION.test(path);
}

/** How much of an answer is read to judge it: a refusal is short. */
const MOST_READ_BYTES = 64 * 1024;

/**
 * Whether upstream rejects the credential, and upstream's whole answer. Upstream says "not found" of an unknown App as
 * of any other missing thing, so only the words of the answer tell the two apart.
 * @throws UpstreamUnavailableError when the answer breaks off, or is longer than a refusal
 */
async function judged(opened: Opened): Promise<{ isRejected: boolean; answer: Opened }> {
  if (opened.status !== 404) return { isRejected: opened.status === 401, answer: opened };
  const read: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of opened.body) {
      read.push(piece);
      size += piece.length;
      if (size > MOST_READ_BYTES) throw new Error("it is too long for a refusal");
    }
  } catch (cause) {
    throw new UpstreamUnavailableError("Upstream's refusal cannot be read", "unreadable", { status: 404, cause });
  }
  const answer = { ...opened, body: Readable.from(read) };
  return { isRejected: /"Integration not found/.test(Buffer.concat(read).toString()), answer };
}

/** Whether upstream can be asked in the caller's own name. */
export function mayForwardAs(caller: Caller): boolean {
  return caller.kind === "user" && caller.by.of === "upstream";
}

/**
 * Whether this caller's documents may go to upstream. With one of Tain's tokens nobody could say what they may read.
 */
export function mayBeForwarded({ config }: { config: Pick<Config, "passThrough"> }, caller: User): boolean {
  return config.passThrough !== false && mayForwardAs(caller);
}

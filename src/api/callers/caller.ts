import { hash as digestOf } from "node:crypto";
import { crc32 } from "node:zlib";
import { eq } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { networkOf } from "../../http/addresses.ts";
import type { Fields } from "../../json.ts";
import { apiTokens } from "../../schema.ts";
import { fingerprint } from "../../upstream/credentials/credentials.ts";
import type { Opened } from "../../upstream/protocol/opened.ts";
import type { WriteRequest } from "../../upstream/protocol/upstream.ts";
import { RefusalCounts } from "../../work/audit-log.ts";
import { mostEntries } from "../../work/bounded.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";
import { appsRefused, areAppsForwarded, isAppsQuestion, isJwt, judged } from "./apps-questions.ts";
import { type AsStranger, Logins } from "./logins.ts";
import { beginsAsOurs, isOfOurForm } from "./our-tokens.ts";
import type { PeopleQuestion } from "./people-rights.ts";
import { type ApiToken, accessIn, type Caller, type ForwardOwn, kindsOf, type User } from "./permissions.ts";
import { type CallerQuota, classOfRights, type Payer, type Recognised } from "./quota.ts";
import { UpstreamCallers } from "./upstream-callers.ts";
import type { AskedRepository, RepositoryPermission } from "./upstream-rights.ts";

/** Names a token that was shown, without telling it: one of ours, or one of upstream's. */
export interface Credential {
  of: "own" | "upstream";
  hash: string;
}

/** An App's question about itself: how it is forwarded, and whose quota that costs. */
interface AsApp {
  send: ForwardOwn;
  payer: Payer;
}

/** Knows callers by our own tokens and by upstream's, as `AUTH_MODE` allows. */
export class Callers {
  readonly #mode: Context["config"]["authMode"];
  readonly #upstreamUrl: string;
  readonly #areAppsForwarded: boolean;
  /** Bounds what attempts with unknown credentials cost. */
  readonly logins: Logins;
  readonly #refusals: RefusalCounts;
  readonly #tokens: ApiTokens;
  readonly #upstream: UpstreamCallers;

  constructor(
    ctx: Pick<Context, "config" | "db" | "redis" | "clock" | "random" | "log" | "metrics" | "tracing">,
    quota: CallerQuota,
  ) {
    this.#mode = ctx.config.authMode;
    this.#areAppsForwarded = areAppsForwarded(ctx.config);
    this.#upstreamUrl = ctx.config.upstreamUrl;
    this.#refusals = new RefusalCounts(ctx);
    this.logins = new Logins(ctx, quota, this.#refusals);
    this.#tokens = new ApiTokens(ctx);
    this.#upstream = new UpstreamCallers(ctx);
  }

  /**
   * Knows a caller by `Authorization: Bearer T`, `token T` or Basic with the token as the password. A header of another
   * form shows no credential.
   * @throws ApiFault 401 for an unknown or malformed credential; 403 for an unknown one, where its address has shown
   *   too many; 503 when upstream cannot be asked about it
   */
  async identify({ authorization, address }: { authorization: string | undefined; address: string }): Promise<Caller> {
    // The service was seen to overlook a header of no scheme that it knows.
    if (authorization === undefined || !SCHEME.test(authorization)) return { kind: "anonymous", address };
    const text = shownToken(authorization);
    const user = text === null ? null : await this.#user(text, address);
    if (!user) throw new ApiFault(401, "Bad credentials", { documentationUrl: REST_DOCS });
    return user;
  }

  /**
   * Forwards an App's question about itself, with the credential as it was shown. Null for any other request. Nobody is
   * asked whose the credential is, and no answer is kept. A credential that upstream rejects counts as a failed attempt
   * of the address. A known caller pays as for any request, others by their network.
   * @throws ApiFault 403 where such questions are not forwarded
   */
  asApp({ authorization, address, path }: { authorization: string; address: string; path: string }): AsApp | null {
    const token = shownToken(authorization);
    if (this.#mode === "tokens" || token === null || beginsAsOurs(token)) return null;
    if (!isAppsQuestion(path, token) || !mayBeUpstreams(token, this.#upstreamUrl)) return null;
    if (!this.#areAppsForwarded) {
      if (isJwt(token)) throw appsRefused();
      return null; // Upstream says whose an installation's token is, so it is a caller's like any other.
    }
    const known = this.#upstream.recall(hashOf(token));
    const send: ForwardOwn = async (request) => {
      const ask = async () => await judged(await this.#upstream.upstream.forward({ ...request, token }));
      if (known) return (await ask()).answer;
      const { promise: answered, resolve } = Promise.withResolvers<Opened>();
      await this.logins.apps(address, async () => {
        const { isRejected, answer } = await ask();
        resolve(answer);
        return isRejected ? null : answer;
      });
      return await answered;
    };
    // A quota apart: one App with many installations asks more than those without a token may.
    const network: Payer = { kind: "user", quotaName: `app:a${networkOf(address)}`, hourlyLimit: null };
    return { send, payer: known?.payer ?? network };
  }

  /** A name for the credential, to recognise it when it is shown again; null if the header holds no credential. */
  credentialOf(authorization: string): Credential | null {
    const text = shownToken(authorization);
    return text === null ? null : { of: beginsAsOurs(text) ? "own" : "upstream", hash: hashOf(text) };
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
    await Promise.all([this.#refusals.flush(), this.#tokens.close(), this.#upstream.close()]);
  }

  async #user(text: string, address: string): Promise<User | null> {
    // Our own tokens never go to upstream, whatever the mode.
    if (beginsAsOurs(text)) {
      if (this.#mode === "upstream" || !isOfOurForm(text)) return null;
      const token = await this.#tokens.find(text, (ask) => this.logins.own(address, ask));
      if (!token) return null;
      return { ...token.payer, userId: token.userId, by: { of: "own", token } };
    }
    if (this.#mode === "tokens" || !mayBeUpstreams(text, this.#upstreamUrl)) return null;
    const shown = { text, hash: hashOf(text) };
    const known = await this.#upstream.find(shown, (ask) => this.logins.upstreams(address, ask));
    if (!known) return null;
    const { upstream } = this.#upstream;
    const write = (request: WriteRequest) => upstream.write(text, request);
    const forward: ForwardOwn = (request) => upstream.forward({ ...request, token: text });
    const get = (path: string) => upstream.get(text, path);
    const mutate = (query: string, variables: Fields) => upstream.graphql({ token: text, query, variables });
    const publicRights = (repositories: readonly AskedRepository[]) =>
      this.#upstream.publicRights.find(shown, repositories);
    const peopleShown = (question: PeopleQuestion) => this.#upstream.peopleRights.find(shown, question);
    const asThemselves = { write, forward, get, mutate, publicRights, peopleShown };
    const by = { of: "upstream", fingerprint: fingerprint(text), known, ...asThemselves } as const;
    return { ...known.payer, userId: known.userId, by };
  }
}

const SCHEME = /^(bearer|token|basic)( |$)/i;

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

/** The hash of a token, which is all that is kept of it. */
export function hashOf(token: string): string {
  return digestOf("sha256", token);
}

const ID_LENGTH = 12;

/** The id of one of our tokens, by its hash. */
export function idOfHash(hash: string): string {
  return hash.slice(0, ID_LENGTH);
}

const GITHUB = "https://api.github.com";

/**
 * The forms of GitHub's tokens: those of the GitHub docs, "Token formats", and two older ones. The older ones are 40
 * hexadecimal digits, with or without `v1.` before them. Tokens of installations may hold a JWT. An App's own JWT has
 * no prefix.
 */
const GITHUBS =
  /^(gh[a-z]_[\w.-]{36,2048}|github_pat_\w{22,255}|(v1\.)?[0-9a-f]{40}|eyJ[\w-]{1,1024}\.[\w-]{1,2048}\.[\w-]{1,1024})$/;

/** A token of GitHub's that ends in a checksum: thirty characters, and their CRC-32 in base 62. */
const CHECKED = /^gh[pousr]_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/;
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

function isOfGithubs(text: string): boolean {
  if (!GITHUBS.test(text)) return false;
  const [, random, checksum] = CHECKED.exec(text) ?? [];
  return random === undefined || checksumOf(random) === checksum;
}

function checksumOf(random: string): string {
  let digits = "";
  for (let rest = crc32(random); rest > 0; rest = Math.floor(rest / 62)) digits = DIGITS[rest % 62] + digits;
  return digits.padStart(6, "0");
}

/** What may stand behind `Bearer`, by RFC 6750. */
const ANYONES = /^[\w.~+/-]{1,2048}={0,2}$/;

/** Whether the text may be a token of upstream's. Enterprise servers and other upstreams have forms of their own. */
export function mayBeUpstreams(text: string, upstreamUrl: string): boolean {
  return upstreamUrl === GITHUB ? isOfGithubs(text) : ANYONES.test(text);
}

/** A token that is revoked, or has expired, is refused within this time in every process. */
const REMEMBERED_MS = 10_000;
const REMEMBERED_TOKENS = 10_000;
const LAST_USE_PRECISION_MS = 60_000;

interface TokenRow {
  user_id: number;
  can_write: boolean;
  permissions: string[] | null;
  last_used_at: Date | null;
  hourly_limit: number | null;
  repositories: number[] | null;
}

function apiTokenOf(id: string, row: TokenRow): ApiToken {
  const { user_id: userId, hourly_limit: hourlyLimit } = row;
  const kinds = kindsOf(row.permissions, row.can_write);
  const repositories = row.repositories ?? "all";
  // A token with a limit of its own is counted by itself, the others by their user.
  const quotaName = hourlyLimit === null ? `u${userId}` : `t${id}`;
  const rights = classOfRights("own", [kinds, repositories]);
  const payer: Recognised = { kind: "user", quotaName, hourlyLimit, class: rights, scopes: null };
  return { id, userId, kinds, repositories, access: accessIn(repositories, kinds), payer };
}

interface RememberedToken {
  token: ApiToken;
  /** When the token's use was last noted, as far as this process knows. */
  usedAt: number;
  /**
   * Until when this is believed, by the monotonic clock: a clock that is set back must not keep a revoked token alive.
   */
  until: number;
}

/** Our tokens, each asked of Postgres once in a while. */
export class ApiTokens {
  readonly #ctx: Pick<Context, "config" | "db" | "clock" | "log">;
  readonly #known = new LRUCache<string, RememberedToken>(mostEntries(REMEMBERED_TOKENS));
  /** Hashes that belong to no token, and until when each is believed, by the same clock. They push no token out. */
  readonly #refused = new LRUCache<string, number>(mostEntries(REMEMBERED_TOKENS));
  readonly #lastUses = new LRUCache<string, number>(mostEntries(REMEMBERED_TOKENS));
  readonly #writes = new Set<Promise<void>>();

  constructor(ctx: Pick<Context, "config" | "db" | "clock" | "log">) {
    this.#ctx = ctx;
  }

  /** The token with this hash. Null: Postgres would have to be asked. */
  recall(hash: string): ApiToken | null {
    const known = this.#known.get(hash);
    if (!known || known.until <= performance.now()) return null;
    this.#noteUse(hash, known);
    return known.token;
  }

  /**
   * The token. Null: it does not exist, is revoked or has expired.
   * @param asStranger asks about a token that is not known yet, or throws
   */
  async find(text: string, asStranger: AsStranger = (ask) => ask()): Promise<ApiToken | null> {
    const hash = hashOf(text);
    const recalled = this.recall(hash);
    if (recalled) return recalled;
    if ((this.#refused.get(hash) ?? 0) > performance.now()) return null;
    const ask = () => this.#ask(hash);
    const found = await (this.#known.has(hash) ? ask() : asStranger(ask));
    if (found) {
      this.#known.set(hash, found);
      this.#noteUse(hash, found);
      return found.token;
    }
    this.#known.delete(hash);
    this.#refused.set(hash, performance.now() + REMEMBERED_MS);
    return null;
  }

  async #ask(hash: string): Promise<RememberedToken | null> {
    const until = performance.now() + REMEMBERED_MS;
    const [row] = await this.#ctx.db.prepared<TokenRow>(sql`
        select t.user_id, t.can_write, t.permissions, t.last_used_at, t.hourly_limit,
            case when t.repository_ids is not null or t.owner_ids is not null then
              array(select r.id from repositories r
                where r.id = any(t.repository_ids) or r.owner_id = any(t.owner_ids)) end as repositories
          from api_tokens t where t.hash = ${hash} and t.revoked_at is null
            and (t.expires_at is null or t.expires_at > ${this.#ctx.clock.now()})`);
    if (!row) return null;
    const usedAt = Math.max(row.last_used_at?.getTime() ?? 0, this.#lastUses.get(hash) ?? 0);
    return { token: apiTokenOf(idOfHash(hash), row), usedAt, until };
  }

  /** Waits for the notes of last use that are under way. */
  async close(): Promise<void> {
    await Promise.all(this.#writes);
  }

  /** Notes the token's use. No answer waits for this, and none fails with it. */
  #noteUse(hash: string, known: RememberedToken): void {
    if (this.#ctx.db.isReadOnly) return;
    const now = this.#ctx.clock.now();
    if (now.getTime() - known.usedAt < LAST_USE_PRECISION_MS) return;
    known.usedAt = now.getTime();
    this.#lastUses.set(hash, now.getTime());
    const write: Promise<void> = this.#ctx.db
      .update(apiTokens)
      .set({ lastUsedAt: now })
      .where(eq(apiTokens.hash, hash))
      .then(
        () => {},
        (error: unknown) => this.#ctx.log.warn({ err: error }, "The last use of a token could not be noted"),
      )
      .finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }
}

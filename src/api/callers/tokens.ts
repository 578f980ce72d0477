import { hash as digestOf, randomInt } from "node:crypto";
import { LRUCache } from "lru-cache";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Sight, sightIn } from "../../mirror/read/sight.ts";
import { mostEntries } from "../../work/bounded.ts";
import { type Kinds, kindsOf, type Permission } from "./kinds.ts";
import type { AsStranger } from "./logins.ts";
import { classOfRights, type Recognised } from "./quota.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS = 40;

/** A token that is revoked, or has expired, is refused within this time in every process. */
const REMEMBERED_MS = 10_000;
const REMEMBERED_TOKENS = 10_000;
const LAST_USE_PRECISION_MS = 60_000;

/**
 * The scope of a token, by upstream's ids: these repositories, and all of these accounts. Null: everything that is
 * mirrored.
 */
export interface TokenScope {
  repositoryIds: readonly number[];
  ownerIds: readonly number[];
}

/** What one of our own tokens allows. */
export interface ApiToken {
  /** Names the token without revealing it. */
  id: string;
  userId: number;
  kinds: Kinds;
  /** The mirrored repositories that it is for; it sees the public ones beside them. */
  repositories: "all" | readonly number[];
  sight: Sight;
  payer: Recognised;
}

/**
 * Makes a token that answers as the user. The token is shown once, and only its hash is kept. `permissions` say what
 * the token may read and write of each repository. Without them it may read all, and `canWrite` says whether it may
 * write.
 */
export async function createApiToken(
  { db, clock }: Pick<Context, "db" | "clock">,
  {
    userId,
    canWrite,
    permissions = null,
    scope = null,
    hourlyLimit = null,
    expiresAt = null,
  }: {
    userId: number;
    canWrite: boolean;
    permissions?: readonly Permission[] | null;
    scope?: TokenScope | null;
    hourlyLimit?: number | null;
    expiresAt?: Date | null;
  },
): Promise<string> {
  const token = `tain_${Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join("")}`;
  await db.query(sql`
    insert into api_tokens (hash, user_id, can_write, permissions, created_at, repository_ids, owner_ids, hourly_limit,
        expires_at)
      values (${hashOf(token)}, ${userId}, ${canWrite && permissions === null}, ${permissions}, ${clock.now()},
        ${scope?.repositoryIds ?? null}, ${scope?.ownerIds ?? null}, ${hourlyLimit}, ${expiresAt})`);
  return token;
}

/** One of our tokens, as far as it may be shown. */
export interface ListedToken {
  /** The beginning of the token's hash, which names the token without revealing it. */
  id: string;
  userId: number;
  /** The user's login. Null: that user is not mirrored. */
  login: string | null;
  /** Whether the token may write anything. */
  canWrite: boolean;
  /** What the token is permitted besides the repositories themselves. Null: all kinds. */
  permissions: Permission[] | null;
  /**
   * The token's repositories as they are called now, as `owner/name` and `owner/*`. Null: everything that is mirrored.
   */
  repositories: string[] | null;
  /** The quota of an hour. 0: there is no limit. Null: the token draws on its user's quota. */
  hourlyLimit: number | null;
  createdAt: Date;
  /** When the token was last used, to the minute. Null: it never was. */
  lastUsedAt: Date | null;
  /** When the token expires. Null: it never does. */
  expiresAt: Date | null;
  revokedAt: Date | null;
}

const ID_LENGTH = 12;

/** The id that `listApiTokens` shows for a token. Pure. */
export function apiTokenId(token: string): string {
  return hashOf(token).slice(0, ID_LENGTH);
}

const LISTED = sql`t.id, t.user_id::float8 as "userId", u.login,
  t.can_write or coalesce(t.permissions && array['issues:write', 'pull_requests:write'], false) as "canWrite", t.permissions,
  case when t.repository_ids is not null or t.owner_ids is not null then
    array(select r.full_name from repositories r where r.id = any(t.repository_ids) order by lower(r.full_name)) ||
    array(select o.login || '/*' from users o where o.id = any(t.owner_ids) order by lower(o.login)) end
    as repositories, t.hourly_limit as "hourlyLimit", t.created_at as "createdAt", t.last_used_at as "lastUsedAt",
  t.expires_at as "expiresAt", t.revoked_at as "revokedAt"`;

/** All tokens that were ever made, the newest first. */
export async function listApiTokens({ db }: Pick<Context, "db">): Promise<ListedToken[]> {
  return await db.query(sql`
    select ${LISTED} from api_tokens t left join users u on u.id = t.user_id order by t.created_at desc, t.id`);
}

/**
 * Revokes the tokens with these ids, and answers the revoked tokens. Each process refuses them within ten seconds. A
 * token that was revoked before keeps the time of that.
 */
export async function revokeApiTokens(
  { db, clock }: Pick<Context, "db" | "clock">,
  ids: readonly string[],
): Promise<ListedToken[]> {
  return await db.query(sql`
    with revoked as (
      update api_tokens set revoked_at = coalesce(revoked_at, ${clock.now()})
        where id = any(${ids}) returning id, user_id, can_write, permissions, created_at, last_used_at, repository_ids,
          owner_ids, hourly_limit, expires_at, revoked_at
    ) select ${LISTED} from revoked t left join users u on u.id = t.user_id order by t.created_at desc, t.id`);
}

interface TokenRow {
  user_id: string;
  can_write: boolean;
  permissions: string[] | null;
  last_used_at: Date | null;
  hourly_limit: number | null;
  repositories: number[] | null;
}

function tokenOf(id: string, row: TokenRow): ApiToken {
  const { user_id, hourly_limit: hourlyLimit } = row;
  const kinds = kindsOf(row.permissions, row.can_write);
  const userId = Number(user_id);
  const repositories = row.repositories ?? "all";
  // A token with a limit of its own is counted by itself, the others by their user.
  const quotaName = hourlyLimit === null ? `u${userId}` : `t${id}`;
  const rights = classOfRights("own", [kinds, repositories]);
  const payer: Recognised = { kind: "user", quotaName, hourlyLimit, class: rights, scopes: null };
  const { checks, statuses, contents } = kinds;
  const given = { issues: kinds.issues !== null, pulls: kinds.pulls !== null, checks, statuses, contents };
  const sight = sightIn(repositories, given);
  return { id, userId, kinds, repositories, sight, payer };
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
              array(select r.id::float8 from repositories r
                where r.id = any(t.repository_ids) or r.owner_id = any(t.owner_ids)) end as repositories
          from api_tokens t where t.hash = ${hash} and t.revoked_at is null
            and (t.expires_at is null or t.expires_at > ${this.#ctx.clock.now()})`);
    if (!row) return null;
    const usedAt = Math.max(row.last_used_at?.getTime() ?? 0, this.#lastUses.get(hash) ?? 0);
    return { token: tokenOf(hash.slice(0, ID_LENGTH), row), usedAt, until };
  }

  /** Waits for the notes of last use that are under way. */
  async close(): Promise<void> {
    await Promise.all(this.#writes);
  }

  /** Notes the token's use. No answer waits for this, and none fails with it. An edge has nowhere to note it. */
  #noteUse(hash: string, known: RememberedToken): void {
    if (this.#ctx.config.edgeOf !== null) return;
    const now = this.#ctx.clock.now();
    if (now.getTime() - known.usedAt < LAST_USE_PRECISION_MS) return;
    known.usedAt = now.getTime();
    this.#lastUses.set(hash, now.getTime());
    const write: Promise<void> = this.#ctx.db
      .query(sql`update api_tokens set last_used_at = ${now} where hash = ${hash}`)
      .then(
        () => {},
        (error: unknown) => this.#ctx.log.warn({ err: error }, "The last use of a token could not be noted"),
      )
      .finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }
}

/** The hash of a token, which is all that is kept of it. */
export function hashOf(token: string): string {
  return digestOf("sha256", token);
}

import { randomInt } from "node:crypto";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { apiTokens } from "../../schema.ts";
import { hashOf, idOfHash } from "./caller.ts";
import type { Permission } from "./permissions.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS = 40;

/**
 * The scope of a token, by upstream's ids: these repositories, and all of these accounts. Null: everything that is
 * mirrored.
 */
export interface TokenScope {
  repositoryIds: readonly number[];
  ownerIds: readonly number[];
}

/** Another token that is not revoked has the name. Nothing was made. */
export class TokenNameTakenError extends Error {
  override name = "TokenNameTakenError";
}

/**
 * Makes a token that answers as the user. The token is shown once, and only its hash is kept. `permissions` say what
 * the token may read and write of each repository. Without them it may read all, and `canWrite` says whether it may
 * write.
 * @throws TokenNameTakenError
 */
export async function createApiToken(
  { db, clock }: Pick<Context, "db" | "clock">,
  {
    userId,
    canWrite,
    name = null,
    permissions = null,
    scope = null,
    hourlyLimit = null,
    expiresAt = null,
  }: {
    userId: number;
    canWrite: boolean;
    name?: string | null;
    permissions?: readonly Permission[] | null;
    scope?: TokenScope | null;
    hourlyLimit?: number | null;
    expiresAt?: Date | null;
  },
): Promise<string> {
  const token = `tain_${Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join("")}`;
  const values = {
    hash: hashOf(token),
    userId,
    name,
    canWrite: canWrite && permissions === null,
    permissions: permissions && [...permissions],
    createdAt: clock.now(),
    repositoryIds: scope && [...scope.repositoryIds],
    ownerIds: scope && [...scope.ownerIds],
    hourlyLimit,
    expiresAt,
  };
  const made = await db
    .insert(apiTokens)
    .values(values)
    .onConflictDoNothing({ target: apiTokens.name, where: sql`revoked_at is null` })
    .returning({ id: apiTokens.id });
  if (made.length === 0) throw new TokenNameTakenError(`A token is called ${name} already`);
  return token;
}

/** One of our tokens, as far as it may be shown. */
export interface ListedToken {
  /** The beginning of the token's hash, which names the token without revealing it. */
  id: string;
  /** What an operator called it. Of the tokens that are not revoked, no two have one name. Null: it has none. */
  name: string | null;
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

/** The id that `listApiTokens` shows for a token. Pure. */
export function apiTokenId(token: string): string {
  return idOfHash(hashOf(token));
}

const TOKEN_COLUMNS = sql`t.id, t.name, t.user_id as "userId", u.login,
  t.can_write or coalesce(t.permissions && array['issues:write', 'pull_requests:write'], false) as "canWrite", t.permissions,
  case when t.repository_ids is not null or t.owner_ids is not null then
    array(select r.full_name from repositories r where r.id = any(t.repository_ids) order by folded(r.full_name)) ||
    array(select o.login || '/*' from users o where o.id = any(t.owner_ids) order by folded(o.login)) end
    as repositories, t.hourly_limit as "hourlyLimit", t.created_at as "createdAt", t.last_used_at as "lastUsedAt",
  t.expires_at as "expiresAt", t.revoked_at as "revokedAt"`;

/** All tokens that were ever made, the newest first. */
export async function listApiTokens({ db }: Pick<Context, "db">): Promise<ListedToken[]> {
  return await db.query(sql`
    select ${TOKEN_COLUMNS} from api_tokens t left join users u on u.id = t.user_id order by t.created_at desc, t.id`);
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
        where id = any(${ids}) returning id, name, user_id, can_write, permissions, created_at, last_used_at, repository_ids,
          owner_ids, hourly_limit, expires_at, revoked_at
    ) select ${TOKEN_COLUMNS} from revoked t left join users u on u.id = t.user_id order by t.created_at desc, t.id`);
}

import { and, desc, eq, gte, or } from "drizzle-orm";
import type { TokenOf, WriteOutcome } from "../../../db/schema/states.ts";
import { among, escapeLike, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { apiTokens, repositories, users, writes } from "../../schema.ts";
import { fingerprint } from "../../upstream/credentials/credentials.ts";
import { deleteInBatches } from "../../work/deletion.ts";
import { apiTokenId } from "../callers/tokens.ts";

/** One write, as far as it may be shown. */
export interface ListedWrite {
  id: string;
  begunAt: Date;
  /** Null: it is under way, or its process ended first. */
  endedAt: Date | null;
  tokenOf: TokenOf;
  /** The id of one of our tokens, or the fingerprint of one of upstream's. */
  token: string;
  /** What our token is called. Null: it has no name, or the token is upstream's. */
  tokenName: string | null;
  userId: number;
  /** Null while that user is not mirrored. */
  login: string | null;
  method: string;
  /** Null: a forwarded write. */
  route: string | null;
  path: string;
  repositoryId: number | null;
  /** As it is called now. */
  repository: string | null;
  outcome: WriteOutcome;
  status: number | null;
  requestId: string;
  upstreamRequestId: string | null;
}

export interface WriteFilter {
  since?: Date;
  /** A token's name, id or fingerprint, an account's login, or a token itself, which stands for its id. */
  token?: string;
  /** `owner/name` as it is called now, or was when it was written to. */
  repository?: string;
  limit: number;
}

/** The newest first. */
export async function listWrites(
  { db }: Pick<Context, "db">,
  { since, token, repository, limit }: WriteFilter,
): Promise<ListedWrite[]> {
  const isSince = since && gte(writes.begunAt, since);
  const isOfToken =
    token === undefined
      ? undefined
      : or(
          among(writes.token, tokenIds(token)),
          eq(apiTokens.name, token),
          sql`folded(${users.login}) = folded(${token})`,
        );
  const isOfRepository =
    repository === undefined
      ? undefined
      : or(
          sql`folded(${repositories.fullName}) = folded(${repository})`,
          sql`folded(${writes.path} || '/') like folded(${`/repos/${escapeLike(repository)}/%`})`,
        );
  return await db
    .select({
      id: sql<string>`${writes.id}::text`,
      begunAt: writes.begunAt,
      endedAt: writes.endedAt,
      tokenOf: writes.tokenOf,
      token: writes.token,
      tokenName: apiTokens.name,
      userId: writes.userId,
      login: users.login,
      method: writes.method,
      route: writes.route,
      path: writes.path,
      repositoryId: writes.repositoryId,
      repository: repositories.fullName,
      outcome: writes.outcome,
      status: writes.status,
      requestId: writes.requestId,
      upstreamRequestId: writes.upstreamRequestId,
    })
    .from(writes)
    .leftJoin(users, eq(users.id, writes.userId))
    .leftJoin(apiTokens, and(eq(apiTokens.id, writes.token), eq(writes.tokenOf, "own")))
    .leftJoin(repositories, eq(repositories.id, writes.repositoryId))
    .where(and(isSince, isOfToken, isOfRepository))
    .orderBy(desc(writes.begunAt), desc(writes.id))
    .limit(limit);
}

/** A person may have the token at hand, and not its id. */
function tokenIds(token: string): string[] {
  return [token.toLowerCase(), apiTokenId(token), fingerprint(token)];
}

/** Deletes rows older than `WRITE_RETENTION`. Answers how many went. Short statements; two at once do no harm. */
export async function pruneWrites(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - config.writeRetentionMs);
  return await deleteInBatches(signal, (most) =>
    db.count(sql`with doomed as (
        select id from writes where begun_at < ${before} order by begun_at limit ${most}
      ) delete from writes using doomed where writes.id = doomed.id`),
  );
}

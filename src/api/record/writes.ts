import { escapeLike, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { fingerprint } from "../../upstream/credentials/credentials.ts";
import { deleteInBatches } from "../../work/deletion.ts";
import { apiTokenId } from "../callers/tokens.ts";

/** One write, as far as it may be shown. */
export interface ListedWrite {
  id: string;
  begunAt: Date;
  /** Null: it is under way, or its process ended first. */
  endedAt: Date | null;
  tokenOf: "own" | "upstream";
  /** The id of one of our tokens, or the fingerprint of one of upstream's. */
  token: string;
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
  outcome: "answered" | "unsent" | "unknown";
  status: number | null;
  requestId: string;
  upstreamRequestId: string | null;
}

export interface WriteFilter {
  since?: Date;
  /** The name of a token, an account's login, or a token itself, which stands for its name. */
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
  const conditions = [
    ...(since === undefined ? [] : [sql`w.begun_at >= ${since}`]),
    ...(token === undefined ? [] : [sql`(w.token = any(${tokenNames(token)}) or folded(u.login) = folded(${token}))`]),
    ...(repository === undefined
      ? []
      : [
          sql`(folded(r.full_name) = folded(${repository})
            or folded(w.path || '/') like folded(${`/repos/${escapeLike(repository)}/%`}))`,
        ]),
  ];
  return await db.query(sql`
    select w.id::text, w.begun_at as "begunAt", w.ended_at as "endedAt", w.token_of as "tokenOf", w.token,
        w.user_id::float8 as "userId", u.login, w.method, w.route, w.path, w.repository_id::float8 as "repositoryId",
        r.full_name as repository, w.outcome, w.status, w.request_id as "requestId",
        w.upstream_request_id as "upstreamRequestId"
      from writes w left join users u on u.id = w.user_id left join repositories r on r.id = w.repository_id
      where ${sql.and(conditions)} order by w.begun_at desc, w.id desc limit ${limit}`);
}

/** A person may have the token at hand, and not its name. */
function tokenNames(token: string): string[] {
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

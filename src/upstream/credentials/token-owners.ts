import { and, eq } from "drizzle-orm";
import { among, sql } from "../../../db/sql.ts";
import { objectOf } from "../../json.ts";
import { tokenOwners } from "../../schema.ts";
import type { Stores } from "../../stores.ts";
import { UpstreamRefusedError } from "../protocol/errors.ts";
import type { Upstream } from "../protocol/upstream.ts";
import { parseTokens } from "./credentials.ts";

type TokenStores = Pick<Stores, "config" | "db">;

/**
 * The fingerprints of tokens whose owner is unknown and matters. The tokens of one user share a quota, and only a
 * user's own token sees their private resources.
 */
export async function tokensWithoutOwner({ config, db }: TokenStores): Promise<string[]> {
  const tokens = [...parseTokens(config.upstreamTokens).keys()];
  const selected = await db.count(sql`select from selections where account_type = 'User' limit 1`);
  if (tokens.length < 2 && selected === 0) return [];
  const rows = await db.select({ fingerprint: tokenOwners.fingerprint }).from(tokenOwners);
  const known = new Set(rows.map(({ fingerprint }) => fingerprint));
  return tokens.filter((each) => !known.has(each));
}

/** Asks upstream whose token it is. @throws UpstreamRefusedError when it has no user */
export async function learnOwner(ctx: Pick<Stores, "db"> & { upstream: Upstream }, credential: string): Promise<void> {
  const answer = await ctx.upstream.get("/user", { priority: "caller", credential });
  const { id, login } = objectOf(answer.kind === "ok" ? answer.body : null);
  if (typeof id !== "number" || typeof login !== "string")
    throw new UpstreamRefusedError(404, "upstream does not say whose token this is", null);
  const owner = { userId: id, login };
  await ctx.db
    .insert(tokenOwners)
    .values({ fingerprint: credential, ...owner })
    .onConflictDoUpdate({ target: tokenOwners.fingerprint, set: owner });
  ctx.upstream.credentialsChanged();
}

/** One of our tokens that is the user's own, by fingerprint; null: none is known to be. */
export async function findTokenOf({ config, db }: TokenStores, login: string): Promise<string | null> {
  const ours = [...parseTokens(config.upstreamTokens).keys()];
  const [row] = await db
    .select({ fingerprint: tokenOwners.fingerprint })
    .from(tokenOwners)
    .where(and(eq(sql`folded(${tokenOwners.login})`, login.toLowerCase()), among(tokenOwners.fingerprint, ours)))
    .orderBy(tokenOwners.fingerprint)
    .limit(1);
  return row?.fingerprint ?? null;
}

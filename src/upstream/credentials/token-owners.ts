import { sql } from "../../../db/sql.ts";
import type { Stores } from "../../stores.ts";
import { CredentialRejectedError, QuotaSpentError, UpstreamRefusedError } from "../client/errors.ts";
import { objectOf } from "../client/json.ts";
import type { Upstream } from "../client/upstream.ts";
import { parseTokens } from "./credentials.ts";

/** Asks once for each of several tokens whose it is, since the tokens of one user share one quota. */
export async function learnOwners(ctx: Pick<Stores, "config" | "db" | "log"> & { upstream: Upstream }): Promise<void> {
  const tokens = [...parseTokens(ctx.config.upstreamTokens).keys()];
  if (tokens.length < 2) return;
  const rows = await ctx.db.query<{ fingerprint: string }>(sql`select fingerprint from token_owners`);
  const known = new Set(rows.map(({ fingerprint }) => fingerprint));
  for (const credential of tokens.filter((each) => !known.has(each))) {
    try {
      const answer = await ctx.upstream.get("/user", { priority: "caller", credential });
      if (answer.kind !== "ok") continue;
      const { id, login } = objectOf(answer.body);
      if (typeof id !== "number" || typeof login !== "string") continue;
      await ctx.db.query(sql`
        insert into token_owners (fingerprint, user_id, login) values (${credential}, ${id}, ${login})
          on conflict (fingerprint) do update set user_id = excluded.user_id, login = excluded.login`);
      ctx.upstream.credentialsChanged();
    } catch (error) {
      // One that is rejected, spent or nobody's own is asked again at the next look; the others go on meanwhile.
      const isPassing = error instanceof CredentialRejectedError || error instanceof QuotaSpentError;
      if (!isPassing && !(error instanceof UpstreamRefusedError)) throw error;
      ctx.log.debug({ credential, reason: error.message }, "It is not known whose token this is");
    }
  }
}

import { sql } from "../../../db/sql.ts";
import { objectOf } from "../../json.ts";
import type { Stores } from "../../stores.ts";
import { CredentialRejectedError, QuotaSpentError, UpstreamRefusedError } from "../client/errors.ts";
import type { Upstream } from "../client/upstream.ts";
import { parseTokens } from "./credentials.ts";

/** Asks upstream once for the owner of each of several tokens: the tokens of one user share one quota. */
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
      // A token that is rejected, spent or without a user is asked about again at the next look. It must not stop the others.
      const isPassing = error instanceof CredentialRejectedError || error instanceof QuotaSpentError;
      if (!isPassing && !(error instanceof UpstreamRefusedError)) throw error;
      ctx.log.debug({ credential, reason: error.message }, "It is not known whose token this is");
    }
  }
}

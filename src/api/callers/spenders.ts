import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Spent, spentLately } from "../../upstream/quota/spending.ts";

/** A use of the mirror's quota, with the caller's name as a person says it. */
export interface Spender extends Spent {
  /** The caller's name: `octocat`, or `token ci-bot of octocat`, by its name or id. Null: it was for nobody in particular. */
  who: string | null;
}

/** The largest spenders of the last hour, the largest first. Null: Redis does not answer, so they are not known. */
export async function spenders(
  ctx: Pick<Context, "config" | "db" | "redis" | "clock">,
  limit: number,
): Promise<Spender[] | null> {
  const spent = (await spentLately(ctx))?.slice(0, limit);
  if (!spent) return null;
  const names = await callerNames(
    ctx,
    spent.map(({ caller }) => caller),
  );
  return spent.map((each) => ({ ...each, who: each.caller === "" ? null : (names.get(each.caller) ?? each.caller) }));
}

/** The callers' names, by the names of their quotas: `u` and a user's id, `t` and a token's id. */
export async function callerNames(
  { db }: Pick<Context, "db">,
  callers: readonly string[],
): Promise<Map<string, string>> {
  const users = callers.filter((name) => /^u\d+$/.test(name)).map((name) => name.slice(1));
  const tokens = callers.filter((name) => /^t[0-9a-f]+$/.test(name)).map((name) => name.slice(1));
  const rows = await db.query<{ caller: string; token: string | null; login: string | null }>(sql`
    select 'u' || wanted.id as caller, null as token, u.login
      from unnest(${users}::text[]) as wanted (id) left join users u on u.id = wanted.id::bigint
    union
    select 't' || wanted.id, t.name, u.login from unnest(${tokens}::text[]) as wanted (id)
      left join api_tokens t on t.id = wanted.id left join users u on u.id = t.user_id`);
  const named = rows.map(({ caller, token, login }): [string, string] => {
    const id = caller.slice(1);
    if (caller.startsWith("u")) return [caller, login ?? `user ${id}`];
    return [caller, `token ${token ?? id}${login === null ? "" : ` of ${login}`}`];
  });
  return new Map([...named, ["strangers", "callers without a token"]]);
}

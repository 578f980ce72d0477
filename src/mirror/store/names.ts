import type { Database, Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Fields } from "../../json.ts";
import { mergeObserved } from "./merge.ts";
import { joinObserved, observe } from "./observation.ts";

const HOUR = 60 * 60_000;
/** How old a name may become. */
export const NAME_AGE_MS = 24 * HOUR;
/** When to ask again where GraphQL does not say. A mirror that is asked may have still to ask its own upstream. */
const UNCLEAR_MS = HOUR / 4;

export interface ReadNames {
  /** What was shown of each account, by its id and REST's keys. "unclear": upstream does not say, or not now. */
  names: ReadonlyMap<number, Fields | "unclear">;
  seenAt: Date;
  /** Upstream's REST address. */
  api: string;
}

/** Stores what was shown, and when each account is to be asked for again. */
export async function storeNames(tx: Transaction, { names, seenAt, api }: ReadNames): Promise<void> {
  const at = { api, seenAt, read: true, isPart: true };
  const shown = [...names].flatMap(([id, account]) =>
    account === "unclear" || !("name" in account) ? [] : [observe("user", { id, ...account }, at)],
  );
  await mergeObserved(tx, joinObserved(shown));
  const now = tx.now().getTime();
  const dueAts = [...names.values()].map(
    (account) => new Date(now + (account === "unclear" ? UNCLEAR_MS : NAME_AGE_MS)),
  );
  await tx.query(sql`
    update account_names a set due_at = x.due_at
      from unnest(${sql.array([...names.keys()], "bigint")}, ${sql.array(dueAts, "timestamptz")}) as x(id, due_at)
      where a.user_id = x.id`);
}

/** Those of the accounts whose names upstream may be asked for now. */
export async function findNamesDue(
  db: Database,
  ids: readonly number[],
  now: Date,
): Promise<{ id: number; nodeId: string; isKnown: boolean }[]> {
  return await db.prepared(sql`
    select u.id, u.node_id as "nodeId", u.document -> 'name' is not null as "isKnown"
      from account_names a join users u on u.id = a.user_id
      where a.user_id = any(${sql.array([...ids], "bigint")}::bigint[]) and a.due_at <= ${now}
        and u.node_id is not null and u.deleted_at is null
      order by a.due_at, a.user_id`);
}

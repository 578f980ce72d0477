import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Fields } from "../../json.ts";
import { mergeObserved } from "./merge.ts";
import { joinObserved, observe } from "./observation.ts";

const HOUR = 60 * 60_000;
/** How old a name may become. */
export const NAME_AGE_MS = 24 * HOUR;
/** When to ask again where GraphQL does not say. A mirror that is asked may have still to ask its own upstream. */
const UNCLEAR_MS = HOUR / 4;

/** By REST's keys. "unclear": upstream does not say, or not now. */
export type AccountName = Fields | "unclear";

export interface ReadNames {
  /** By the accounts' ids. */
  names: ReadonlyMap<number, AccountName>;
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

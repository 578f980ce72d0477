/** Conditions that rows of other tables decide: an issue meets one if a row that names it does. */

import { type SQL, sql } from "../../../db/sql.ts";

/** Rows `t` that name issues: by `t.repository_id` and `number`. Sets of one table have the same `from`. */
export interface KeySet {
  from: SQL;
  number: SQL;
  where: SQL;
}

/** A condition on the issue `i` in its repository `r`, or sets: the issue must be in one of them. */
export type Term = SQL | KeySet[];

/** The sets' rows of one table, and what of them each term asks for. */
interface TableSets extends Pick<KeySet, "from" | "number"> {
  byTerm: SQL[][];
}

/**
 * The condition that the issue is in the sets of all these terms. Sets that a whole search depends on are found first,
 * by their own indexes. Postgres then looks up their issues. However many terms there are, each table is read once: a
 * join for each term would take Postgres seconds to plan.
 * @param scope the whole search is confined to these repositories; null: to none
 */
export function inAll(terms: readonly KeySet[][], scope: SQL | null): SQL {
  const within = scope === null ? sql`` : sql`and t.repository_id = ${scope}`;
  const [only] = terms;
  if (only && terms.length === 1) {
    const selects = only.map(
      ({ from, number, where }) => sql`select t.repository_id, ${number} from ${from} where ${where} ${within}`,
    );
    return sql`(i.repository_id, i.number) in (${sql.join(selects, " union all ")})`;
  }
  const selects = tablesOf(terms).map(
    ({ from, number, byTerm }) =>
      sql`select t.repository_id, ${number} as number, ${hits(byTerm)} from ${from} where ${sql.or(byTerm.flat())} ${within}`,
  );
  return sql`(i.repository_id, i.number) in (select m.repository_id, m.number
    from (${sql.join(selects, " union all ")}) m group by m.repository_id, m.number having ${allHit(terms)})`;
}

/** The same condition below an OR or a NOT: the issue is looked up in the sets. */
export function isInAll(terms: readonly KeySet[][]): SQL {
  const [only] = terms;
  if (only && terms.length === 1) return sql.or(only.map((set) => sql`exists (${rowsOfIssue(set)})`));
  const selects = tablesOf(terms).map(
    ({ byTerm, ...table }) => sql`${rowsOfIssue({ ...table, where: sql.or(byTerm.flat()) }, hits(byTerm))}`,
  );
  return sql`coalesce((select ${allHit(terms)} from (${sql.join(selects, " union all ")}) m), false)`;
}

/** The condition that the issue is in no set of any term. */
export function isInNone(terms: readonly KeySet[][]): SQL {
  const absent = tablesOf(terms).map(
    ({ byTerm, ...table }) => sql`not exists (${rowsOfIssue({ ...table, where: sql.or(byTerm.flat()) })})`,
  );
  return sql.and(absent);
}

function rowsOfIssue({ from, number, where }: KeySet, columns: SQL = sql``): SQL {
  return sql`select ${columns} from ${from}
    where t.repository_id = i.repository_id and ${number} = i.number and ${where}`;
}

/** One column for each term: whether the row meets it. */
function hits(byTerm: readonly SQL[][]): SQL {
  return sql.join(byTerm.map((wheres, at) => sql`${sql.or(wheres)} as ${sql.identifier(`hit_${at}`)}`));
}

function allHit(terms: readonly unknown[]): SQL {
  return sql.and(terms.map((_, at) => sql`bool_or(${sql.identifier(`m.hit_${at}`)})`));
}

function tablesOf(terms: readonly KeySet[][]): TableSets[] {
  const tables = new Map<SQL, TableSets>();
  for (const [at, sets] of terms.entries()) {
    for (const { from, number, where } of sets) {
      const table = tables.getOrInsertComputed(from, () => ({ from, number, byTerm: terms.map(() => []) }));
      table.byTerm[at]?.push(where);
    }
  }
  return [...tables.values()];
}

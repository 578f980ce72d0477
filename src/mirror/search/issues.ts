/** Searches issues and pull requests over all repositories that the searcher sees. */

import type { Database } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { DIRECTIONS, type SQL, sql } from "../../../db/sql.ts";
import { visibleIssue } from "../read/repositories.ts";
import { requireCheckStates } from "./check-states.ts";
import { ISSUE_QUALIFIERS, TEXT_PLACES, type TermContext, textQuery, textSets } from "./issue-terms.ts";
import { findSearchNames, isScope, loginOf, type Searcher } from "./names.ts";
import { type Clause, InvalidSearchError, parseSearch, type SearchQuery } from "./query.ts";
import { inAll, isInAll, isInNone, type KeySet, type Term } from "./sets.ts";

export interface IssueHit {
  repositoryId: number;
  number: number;
  isPullRequest: boolean;
}

export interface SearchOrder {
  /** Unknown: the best match first, which without words is the newest. */
  key: string;
  direction: "asc" | "desc";
}

const ISSUE_SEARCH_KEYS: ReadonlyMap<string, SQL> = new Map([
  ["created", sql`i.created_at`],
  ["updated", sql`i.updated_at`],
  ["comments", sql`coalesce(i.comments, 0)`],
  ["interactions", sql`coalesce(i.comments, 0) + ${reactions("total_count")}`],
  ["reactions", reactions("total_count")],
  ["reactions-+1", reactions("\\+1")],
  ["reactions--1", reactions("-1")],
  ["reactions-smile", reactions("laugh")],
  ["reactions-thinking_face", reactions("confused")],
  ["reactions-heart", reactions("heart")],
  ["reactions-tada", reactions("hooray")],
]);

// Postgres cannot look into a document that holds a NUL; its text can be searched.
function reactions(key: string): SQL {
  return sql`coalesce(substring(i.document::text from ${`"reactions":\\{[^{}]*"${key}":(\\d+)`})::integer, 0)`;
}

/** What a search for issues asks. @throws InvalidSearchError for a query that is too long or nested too deep */
export function parseIssueSearch(text: string): SearchQuery {
  const query = parseSearch(text, (name) => isScope(name) || ISSUE_QUALIFIERS.has(name));
  const odd = query.within.find((place) => !TEXT_PLACES.has(place));
  if (odd !== undefined) throw new InvalidSearchError(`"in:${odd}" is not one of ${[...TEXT_PLACES].join(", ")}.`);
  return query;
}

/**
 * A page of matches in a total order, and the number of all matches. `order` overrides the query's own.
 * @throws InvalidSearchError for a search that cannot be made, UnknownScopeError among them
 */
export async function searchIssues(
  db: Database,
  { clauses, sort, within }: SearchQuery,
  searcher: Searcher,
  { limit, offset }: { limit: number; offset: number },
  order: SearchOrder | null = null,
): Promise<{ found: IssueHit[]; total: number }> {
  const names = await findSearchNames(db, clauses, searcher);
  await requireCheckStates(db, clauses, names, searcher);
  const conditions = [
    sql`i.id is not null and i.deleted_at is null`,
    visibleIssue(sql`r`, sql`i`, searcher.access),
    ...new SearchConditions({ names }, within).all(clauses),
  ];
  const { key, direction } = sortKey(order ?? sort, clauses);
  const way = DIRECTIONS[direction];
  // Newest first among the equally good; the rest makes the order total.
  const by = sql`key ${way}, created_at ${way}, repository_id ${way}, number ${way}`;
  // The values of a search decide the fastest plan, so the statement is planned anew each time.
  const rows = await db.query<{
    total: number;
    repository_id: number | null;
    number: number;
    is_pull_request: boolean;
  }>(sql`
    with q as materialized (
      select i.repository_id, i.number, i.is_pull_request, i.created_at, ${key} as key
        from issues i join repositories r on r.id = i.repository_id and r.deleted_at is null
          join repository_syncs s on s.repository_id = r.id and ${MIRRORED} where ${sql.and(conditions)})
    select t.total, p.* from (select count(*) as total from q) t left join lateral
      (select * from q order by ${by} limit ${limit} offset ${offset}) p on true order by ${by}`);
  const found = rows.flatMap(({ repository_id, number, is_pull_request }) =>
    repository_id === null ? [] : [{ repositoryId: repository_id, number, isPullRequest: is_pull_request }],
  );
  return { found, total: rows[0]?.total ?? 0 };
}

function sortKey(order: SearchOrder | null, clauses: Clause[]): { key: SQL; direction: "asc" | "desc" } {
  const key = ISSUE_SEARCH_KEYS.get(order?.key ?? "");
  if (order && key) return { key, direction: order.direction };
  const texts = clauses.flatMap((clause) => (clause.kind === "text" ? [clause.text] : []));
  return { key: texts.length > 0 ? sql`ts_rank(i.search, ${textQuery(texts)})` : sql`0`, direction: "desc" };
}

/** Terms of one kind, whose sets are of the same tables. */
interface Alike {
  terms: KeySet[][];
  isNegated: boolean;
}

/** Clauses as SQL over the issue `i` in its repository `r`. */
class SearchConditions {
  readonly #context: TermContext;
  readonly #places: readonly string[];
  /** The whole search is confined to these repositories; null: to none. */
  #scope: SQL | null = null;

  constructor(context: TermContext, places: readonly string[]) {
    this.#context = context;
    this.#places = places;
  }

  /** All clauses must hold. One of several repositories and owners side by side is enough. */
  all(clauses: readonly Clause[], isTop = true): SQL[] {
    const scopes = clauses.filter((clause) => clause.kind === "qualifier" && isScope(clause.name));
    const conditions: SQL[] = [];
    if (scopes.length > 0) {
      const ids = this.#ids(scopes);
      conditions.push(sql`i.repository_id = ${ids}`);
      if (isTop) this.#scope = ids;
    }
    const alike = new Map<string, Alike>();
    for (const clause of distinct(clauses.filter((one) => !scopes.includes(one)))) {
      const isNegated = clause.kind === "not";
      const of = isNegated ? clause.of : clause;
      const term = this.#term(of);
      if (Array.isArray(term)) {
        const name = `${isNegated} ${of.kind === "qualifier" ? of.name : "text"}`;
        alike.getOrInsertComputed(name, () => ({ terms: [], isNegated })).terms.push(term);
      } else conditions.push(isNegated ? sql`(${term}) is not true` : sql`(${term})`);
    }
    for (const { terms, isNegated } of alike.values())
      conditions.push(isNegated ? isInNone(terms) : isTop ? inAll(terms, this.#scope) : isInAll(terms));
    return conditions;
  }

  #term(clause: Clause): Term {
    switch (clause.kind) {
      case "all":
        return sql.and(this.all(clause.of, false));
      case "any":
        return clause.of.every((one) => one.kind === "text")
          ? textSets(clause.of.map(clauseText), this.#places)
          : sql.or(clause.of.map((one) => sql.and(this.all([one], false))));
      case "not":
        return sql.and(this.all([clause], false));
      case "text":
        return textSets([clause.text], this.#places);
      case "qualifier": {
        if (isScope(clause.name)) return sql`i.repository_id = ${this.#ids([clause])}`;
        const qualifier = ISSUE_QUALIFIERS.get(clause.name);
        if (!qualifier) throw new Error(`The parser let a qualifier through that is none: ${clause.name}`);
        return qualifier(clause.values, this.#context);
      }
    }
  }

  #ids(scopes: readonly Clause[]): SQL {
    const { names } = this.#context;
    const ids = scopes.flatMap((clause) =>
      clause.kind !== "qualifier"
        ? []
        : clause.values.flatMap((value) =>
            clause.name === "repo"
              ? (names.repositories.get(value.toLowerCase()) ?? [])
              : (names.owners.get(loginOf(value)) ?? []),
          ),
    );
    const [only] = ids;
    // With a single id an index can give the order, too.
    return only !== undefined && ids.length === 1 ? sql`${only}::bigint` : sql`any(${ids}::bigint[])`;
  }
}

/** What is said twice means no more than what is said once. */
function distinct(clauses: readonly Clause[]): Clause[] {
  return [...new Map(clauses.map((clause) => [JSON.stringify(clause), clause])).values()];
}

function clauseText(clause: Clause): string {
  return clause.kind === "text" ? clause.text : "";
}

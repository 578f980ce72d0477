/** Searches issues and pull requests over all repositories that the searcher sees. */
import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";
import { visible } from "../read/sight.ts";
import {
  issueQualifiers,
  type KeySet,
  TEXT_PLACES,
  type Term,
  type TermContext,
  textQuery,
  textSets,
} from "./issue-terms.ts";
import { findSearchNames, isScope, loginOf, type Searcher } from "./names.ts";
import { type Clause, InvalidSearchError, parseSearch } from "./query.ts";

export interface FoundIssue {
  repositoryId: number;
  number: number;
  isPullRequest: boolean;
}

export interface SearchOrder {
  /** Unknown: the best match first, which without words is the newest. */
  key: string;
  direction: "asc" | "desc";
}

const SORT_KEYS: ReadonlyMap<string, string> = new Map([
  ["created", "i.created_at"],
  ["updated", "i.updated_at"],
  ["comments", "coalesce(i.comments, 0)"],
  ["interactions", `coalesce(i.comments, 0) + ${reactions("total_count")}`],
  ["reactions", reactions("total_count")],
  ["reactions-+1", reactions("\\+1")],
  ["reactions--1", reactions("-1")],
  ["reactions-smile", reactions("laugh")],
  ["reactions-thinking_face", reactions("confused")],
  ["reactions-heart", reactions("heart")],
  ["reactions-tada", reactions("hooray")],
]);

// Postgres cannot look into a document that holds a NUL; its text can be searched.
function reactions(key: string): string {
  return `coalesce(substring(i.document::text from '"reactions":\\{[^{}]*"${key}":(\\d+)')::integer, 0)`;
}

/**
 * A page of what matches, in a total order, and how many match in all. `order` overrides the query's own.
 * @throws InvalidSearchError for a search that cannot be made, UnknownScopeError among them
 */
export async function searchIssues(
  db: Database,
  text: string,
  searcher: Searcher,
  { limit, offset }: { limit: number; offset: number },
  order: SearchOrder | null = null,
): Promise<{ found: FoundIssue[]; total: number }> {
  const { clauses, sort, within } = parseSearch(text, (name) => isScope(name) || issueQualifiers.has(name));
  const odd = within.find((place) => !TEXT_PLACES.has(place));
  if (odd !== undefined) throw new InvalidSearchError(`"in:${odd}" is not one of ${[...TEXT_PLACES].join(", ")}.`);
  const names = await findSearchNames(db, clauses, searcher);
  const statement = new Statement();
  const conditions = new Conditions({ statement, names }, within);
  const from = `from issues i join repositories r on r.id = i.repository_id and r.deleted_at is null
    join repository_syncs s on s.repository_id = r.id and s.state <> 'gone'
    where ${["i.id is not null and i.deleted_at is null", visible(statement, "r", searcher.sight), ...conditions.all(clauses)].join(" and ")}`;
  const { key, direction } = sortKey(statement, order ?? sort, clauses);
  // Newest first among the equally good; then whatever makes the order total.
  const by = ["key", "created_at", "repository_id", "number"].map((column) => `${column} ${direction}`).join(", ");
  const rows = await statement.rowsPlannedAnew<{
    total: string;
    repository_id: string | null;
    number: number;
    is_pull_request: boolean;
  }>(
    db,
    `select q.total, p.* from (select count(*) as total ${from}) q left join lateral
      (select i.repository_id, i.number, i.is_pull_request, i.created_at, ${key} as key ${from}
       order by ${by} limit ${statement.value(limit)} offset ${statement.value(offset)}) p on true order by ${by}`,
  );
  const found = rows.flatMap(({ repository_id, number, is_pull_request }) =>
    repository_id === null ? [] : [{ repositoryId: Number(repository_id), number, isPullRequest: is_pull_request }],
  );
  return { found, total: Number(rows[0]?.total ?? 0) };
}

function sortKey(
  statement: Statement,
  order: SearchOrder | null,
  clauses: Clause[],
): { key: string; direction: "asc" | "desc" } {
  const key = SORT_KEYS.get(order?.key ?? "");
  if (order && key) return { key, direction: order.direction };
  const texts = clauses.flatMap((clause) => (clause.kind === "text" ? [clause.text] : []));
  return { key: texts.length > 0 ? `ts_rank(i.search, ${textQuery(statement, texts)})` : "0", direction: "desc" };
}

/** Clauses as SQL over the issue `i` in its repository `r`. */
class Conditions {
  readonly #context: TermContext;
  readonly #places: readonly string[];
  /** The repositories to which the whole search is confined; null: to none. */
  #scope: string | null = null;

  constructor(context: TermContext, places: readonly string[]) {
    this.#context = context;
    this.#places = places;
  }

  /** All of these. Of repositories and owners that stand side by side, any will do. */
  all(clauses: readonly Clause[], isTop = true): string[] {
    const scopes = clauses.filter((clause) => clause.kind === "qualifier" && isScope(clause.name));
    const conditions: string[] = [];
    if (scopes.length > 0) {
      const ids = this.#ids(scopes);
      conditions.push(`i.repository_id = ${ids}`);
      if (isTop) this.#scope = ids;
    }
    for (const clause of clauses) if (!scopes.includes(clause)) conditions.push(this.#one(clause, isTop));
    return conditions;
  }

  #one(clause: Clause, isTop: boolean): string {
    switch (clause.kind) {
      case "all":
        return `(${this.all(clause.of, false).join(" and ")})`;
      case "any":
        return clause.of.every((one) => one.kind === "text")
          ? this.#sql(textSets(this.#context.statement, clause.of.map(textOf), this.#places), isTop)
          : `(${clause.of.map((one) => this.#one(one, false)).join(" or ")})`;
      case "not":
        return `(${this.#one(clause.of, false)}) is not true`;
      case "text":
        return this.#sql(textSets(this.#context.statement, [clause.text], this.#places), isTop);
      case "qualifier": {
        if (isScope(clause.name)) return `i.repository_id = ${this.#ids([clause])}`;
        const qualifier = issueQualifiers.get(clause.name);
        if (!qualifier) throw new Error(`The parser let a qualifier through that is none: ${clause.name}`);
        return `(${this.#sql(qualifier(clause.values, this.#context), isTop)})`;
      }
    }
  }

  /**
   * Sets that the whole search depends on are found first, by their own indexes; Postgres then looks up what is in them. Under
   * an OR or a NOT the issue is looked up in the set instead.
   */
  #sql(term: Term, isTop: boolean): string {
    if (typeof term === "string") return term;
    if (!isTop) return `(${term.map((set) => this.#exists(set)).join(" or ")})`;
    const scope = this.#scope === null ? "" : ` and t.repository_id = ${this.#scope}`;
    const selects = term.map(
      ({ from, number, where }) => `select t.repository_id, ${number} from ${from} where ${where}${scope}`,
    );
    return `(i.repository_id, i.number) in (${selects.join(" union all ")})`;
  }

  #exists({ from, number, where }: KeySet): string {
    return `exists (select from ${from} where t.repository_id = i.repository_id and ${number} = i.number and ${where})`;
  }

  #ids(scopes: readonly Clause[]): string {
    const { statement, names } = this.#context;
    const ids = scopes.flatMap((clause) =>
      clause.kind !== "qualifier"
        ? []
        : clause.values.flatMap((value) =>
            clause.name === "repo"
              ? (names.repositories.get(value.toLowerCase()) ?? [])
              : (names.owners.get(loginOf(value)) ?? []),
          ),
    );
    // One alone lets an index serve the order, too.
    return ids.length === 1 ? `${statement.value(ids[0])}::bigint` : `any(${statement.value(ids)}::bigint[])`;
  }
}

function textOf(clause: Clause): string {
  return clause.kind === "text" ? clause.text : "";
}

/** Searches the repositories that the searcher sees. They are few enough to be looked at one by one. */
import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, SQL, sql } from "../../../db/sql.ts";
import { isNamed } from "../read/names.ts";
import { MIRRORED_REPOSITORIES, visible } from "../read/repositories.ts";
import { type Qualifier, ranged, type TermContext, textQuery, worded } from "./issue-terms.ts";
import type { SearchOrder } from "./issues.ts";
import { findSearchNames, isScope, loginOf, type Searcher } from "./names.ts";
import { type Clause, parseSearch, qualifiersIn, type SearchQuery, UnmirroredSearchError } from "./query.ts";
import { numberRange, timeRange } from "./range.ts";

// Postgres cannot look into a document that holds a NUL; its text can be searched.
const TOPICS = sql`substring(r.document::text from '"topics":\\[[^\\]]*\\]')`;
/** Where words may be looked for. Files, the readme among them, are not mirrored. */
const SEARCHED_PLACES: ReadonlyMap<string, SQL> = new Map([
  ["name", sql`w.name`],
  ["description", sql`w.description`],
  ["topics", sql`w.topics`],
]);
/** The words `w` of a repository in each place, which are made once for all that is looked for. */
const PLACES_WORDS = sql`cross join lateral (select search_words(r.name) as name,
  search_words(r.description) as description, search_words(${TOPICS}) as topics offset 0) w`;

const lowered = (values: string[]) => values.map((value) => value.toLowerCase());

const QUALIFIERS: ReadonlyMap<string, Qualifier> = new Map<string, Qualifier>([
  [
    "is",
    worded("is", {
      public: sql`not r.private`,
      private: sql`r.private`,
      internal: sql`r.visibility = 'internal'`,
      archived: sql`r.archived is true`,
    }),
  ],
  ["archived", worded("archived", { true: sql`r.archived is true`, false: sql`r.archived is not true` })],
  ["fork", worded("fork", { true: sql`true`, only: sql`r.fork is true`, false: sql`r.fork is not true` })],
  ["language", (values) => isNamed(sql`r.language`, values)],
  [
    "license",
    (values) =>
      sql.or(
        lowered(values).map(
          (value) => sql`position(${`"license":{"key":${JSON.stringify(value)},`} in r.document::text) > 0`,
        ),
      ),
  ],
  [
    "topic",
    (values) => sql.or(lowered(values).map((value) => sql`position(${JSON.stringify(value)} in ${TOPICS}) > 0`)),
  ],
  ["stars", ranged(numberRange, (within) => within(sql`r.stargazers_count`))],
  ["forks", ranged(numberRange, (within) => within(sql`r.forks_count`))],
  ["size", ranged(numberRange, (within) => within(sql`r.size`))],
  ["created", ranged(timeRange, (within) => within(sql`r.created_at`))],
  ["pushed", ranged(timeRange, (within) => within(sql`r.pushed_at`))],
  ["updated", ranged(timeRange, (within) => within(sql`r.updated_at`))],
]);

const REPOSITORY_SEARCH_KEYS: ReadonlyMap<string, SQL> = new Map([
  ["stars", sql`r.stargazers_count`],
  ["forks", sql`r.forks_count`],
  ["updated", sql`r.updated_at`],
]);

/** What a search for repositories asks. @throws InvalidSearchError for a query that is too long or nested too deep */
export function parseRepositorySearch(text: string): SearchQuery {
  const query = parseSearch(text, (name) => isScope(name) || QUALIFIERS.has(name));
  const odd = query.within.find((place) => !SEARCHED_PLACES.has(place));
  if (odd === undefined) return query;
  throw new UnmirroredSearchError(`"in:${odd}" is not one of ${[...SEARCHED_PLACES.keys()].join(", ")}.`);
}

/**
 * The ids of a page of matches in a total order, and the number of all matches. Forks are left out unless `fork:` asks
 * for them.
 * @throws InvalidSearchError for a search that cannot be made, UnknownScopeError among them
 */
export async function searchRepositories(
  db: Database,
  { clauses, sort, within }: SearchQuery,
  searcher: Searcher,
  { limit, offset }: { limit: number; offset: number },
  order: SearchOrder | null = null,
): Promise<{ found: number[]; total: number }> {
  const context = { names: await findSearchNames(db, clauses, searcher) };
  const places = [...SEARCHED_PLACES]
    .filter(([name]) => within.length === 0 || within.includes(name))
    .map(([, column]) => column);
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const conditions = [
    isMirrored,
    visible(sql`r`, searcher.access, "metadata"),
    ...clausesSql(clauses, context, places),
  ];
  if (![...qualifiersIn(clauses)].some(({ name }) => name === "fork")) conditions.push(sql`r.fork is not true`);
  const wanted = order ?? sort;
  const key = REPOSITORY_SEARCH_KEYS.get(wanted?.key ?? "");
  const direction = key ? (wanted?.direction ?? "desc") : "desc";
  const texts = clauses.flatMap((clause) => (clause.kind === "text" ? [clause.text] : []));
  const match =
    texts.length === 0
      ? sql`0`
      : sql`ts_rank(setweight(w.name, 'A') || setweight(w.description, 'B'), ${textQuery(texts)})`;
  const words = hasTexts(clauses) ? PLACES_WORDS : sql``;
  const by = sql`key ${DIRECTIONS[direction]} nulls last, stars desc nulls last, id`;
  // The values of a search decide the fastest plan, so the statement is planned anew each time.
  const rows = await db.query<{ total: number; id: number | null }>(sql`
    with q as materialized (select r.id, r.stargazers_count as stars, ${key ?? match} as key
      from ${tables} ${words} where ${sql.and(conditions)})
    select t.total, p.* from (select count(*) as total from q) t left join lateral
      (select * from q order by ${by} limit ${limit} offset ${offset}) p on true order by ${by}`);
  return { found: rows.flatMap(({ id }) => id ?? []), total: rows[0]?.total ?? 0 };
}

function hasTexts(clauses: readonly Clause[]): boolean {
  return clauses.some((clause) => {
    if (clause.kind === "text") return true;
    return clause.kind !== "qualifier" && hasTexts([clause.of].flat());
  });
}

/** All clauses must hold. One of several repositories and owners side by side is enough. */
function clausesSql(clauses: readonly Clause[], context: TermContext, places: SQL[]): SQL[] {
  const scopes = clauses.filter((clause) => clause.kind === "qualifier" && isScope(clause.name));
  const others = clauses
    .filter((clause) => !scopes.includes(clause))
    .map((clause) => clauseSql(clause, context, places));
  return scopes.length === 0 ? others : [sql.or(scopes.map((clause) => clauseSql(clause, context, places))), ...others];
}

function clauseSql(clause: Clause, context: TermContext, places: SQL[]): SQL {
  const { names } = context;
  switch (clause.kind) {
    case "all":
      return sql`(${sql.and(clausesSql(clause.of, context, places))})`;
    case "any":
      return sql.or(clause.of.map((inner) => clauseSql(inner, context, places)));
    case "not":
      return sql`(${clauseSql(clause.of, context, places)}) is not true`;
    case "text": {
      const query = textQuery([clause.text]);
      return sql.or(places.map((words) => sql`${words} @@ ${query}`));
    }
    case "qualifier": {
      const { name, values } = clause;
      if (isScope(name)) {
        const ids = values.flatMap(
          (value) =>
            (name === "repo" ? names.repositories.get(value.toLowerCase()) : names.owners.get(loginOf(value))) ?? [],
        );
        return sql`r.id = any(${ids}::bigint[])`;
      }
      const term = QUALIFIERS.get(name)?.(values, context);
      if (!(term instanceof SQL)) throw new Error(`The parser let a qualifier through that is none: ${name}`);
      return sql`(${term})`;
    }
  }
}

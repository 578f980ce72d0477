/** Searches the repositories that the searcher sees. They are few enough to be looked at one by one. */
import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";
import { MIRRORED_REPOSITORIES } from "../read/repositories.ts";
import { visible } from "../read/sight.ts";
import { either, type Qualifier, ranged, type TermContext, textQuery, worded } from "./issue-terms.ts";
import type { SearchOrder } from "./issues.ts";
import { findSearchNames, isScope, loginOf, type Searcher } from "./names.ts";
import { type Clause, InvalidSearchError, parseSearch, qualifiersIn } from "./query.ts";
import { numberRange, timeRange } from "./range.ts";

/** Where words may be looked for. Files, the readme among them, are not mirrored. */
const PLACES: ReadonlyMap<string, string> = new Map([
  ["name", "r.name"],
  ["description", "r.description"],
  // Postgres cannot look into a document that holds a NUL; its text can be searched.
  ["topics", topics()],
]);

function topics(): string {
  return `substring(r.document::text from '"topics":\\[[^\\]]*\\]')`;
}

const lowered = (values: string[]) => values.map((value) => value.toLowerCase());
const oneOf =
  (column: string): Qualifier =>
  (values, { statement }) =>
    `lower(${column}) = any(${statement.value(lowered(values))}::text[])`;

const qualifiers: ReadonlyMap<string, Qualifier> = new Map<string, Qualifier>([
  [
    "is",
    worded("is", {
      public: "not r.private",
      private: "r.private",
      internal: "r.visibility = 'internal'",
      archived: "r.archived is true",
    }),
  ],
  ["archived", worded("archived", { true: "r.archived is true", false: "r.archived is not true" })],
  ["fork", worded("fork", { true: "true", only: "r.fork is true", false: "r.fork is not true" })],
  ["language", oneOf("r.language")],
  [
    "license",
    (values, { statement }) =>
      either(
        lowered(values).map(
          (value) =>
            `position(${statement.value(`"license":{"key":${JSON.stringify(value)},`)} in r.document::text) > 0`,
        ),
      ),
  ],
  [
    "topic",
    (values, { statement }) =>
      either(lowered(values).map((value) => `position(${statement.value(JSON.stringify(value))} in ${topics()}) > 0`)),
  ],
  ["stars", ranged(numberRange, (within) => within("r.stargazers_count"))],
  ["forks", ranged(numberRange, (within) => within("r.forks_count"))],
  ["size", ranged(numberRange, (within) => within("r.size"))],
  ["created", ranged(timeRange, (within) => within("r.created_at"))],
  ["pushed", ranged(timeRange, (within) => within("r.pushed_at"))],
  ["updated", ranged(timeRange, (within) => within("r.updated_at"))],
]);

const SORT_KEYS: ReadonlyMap<string, string> = new Map([
  ["stars", "r.stargazers_count"],
  ["forks", "r.forks_count"],
  ["updated", "r.updated_at"],
]);

/**
 * Ids of a page of what matches, in a total order, and how many match in all. Forks are left out unless `fork:` asks for them.
 * @throws InvalidSearchError for a search that cannot be made, UnknownScopeError among them
 */
export async function searchRepositories(
  db: Database,
  text: string,
  searcher: Searcher,
  { limit, offset }: { limit: number; offset: number },
  order: SearchOrder | null = null,
): Promise<{ found: number[]; total: number }> {
  const { clauses, sort, within } = parseSearch(text, (name) => isScope(name) || qualifiers.has(name));
  const odd = within.find((place) => !PLACES.has(place));
  if (odd !== undefined) throw new InvalidSearchError(`"in:${odd}" is not one of ${[...PLACES.keys()].join(", ")}.`);
  const statement = new Statement();
  const context = { statement, names: await findSearchNames(db, clauses, searcher) };
  const places = [...PLACES]
    .filter(([name]) => within.length === 0 || within.includes(name))
    .map(([, column]) => column);
  const conditions = [visible(statement, "r", searcher.sight), ...all(clauses, context, places)];
  if (![...qualifiersIn(clauses)].some(({ name }) => name === "fork")) conditions.push("r.fork is not true");
  const matching = `${MIRRORED_REPOSITORIES} and ${conditions.join(" and ")}`;
  const wanted = order ?? sort;
  const key = SORT_KEYS.get(wanted?.key ?? "");
  const direction = key ? (wanted?.direction ?? "desc") : "desc";
  const texts = clauses.flatMap((clause) => (clause.kind === "text" ? [clause.text] : []));
  const match =
    texts.length === 0
      ? "0"
      : `ts_rank(setweight(search_words(r.name), 'A') || setweight(search_words(r.description), 'B'), ${textQuery(statement, texts)})`;
  const by = `key ${direction} nulls last, stars desc nulls last, id`;
  const rows = await statement.rowsPlannedAnew<{ total: string; id: string | null }>(
    db,
    `select q.total, p.* from (select count(*) as total ${matching}) q left join lateral
      (select r.id, r.stargazers_count as stars, ${key ?? match} as key ${matching}
       order by ${by} limit ${statement.value(limit)} offset ${statement.value(offset)}) p on true order by ${by}`,
  );
  return { found: rows.flatMap(({ id }) => (id === null ? [] : [Number(id)])), total: Number(rows[0]?.total ?? 0) };
}

/** All of these. Of repositories and owners that stand side by side, any will do. */
function all(clauses: readonly Clause[], context: TermContext, places: string[]): string[] {
  const scopes = clauses.filter((clause) => clause.kind === "qualifier" && isScope(clause.name));
  const others = clauses.filter((clause) => !scopes.includes(clause)).map((clause) => one(clause, context, places));
  return scopes.length === 0 ? others : [either(scopes.map((clause) => one(clause, context, places))), ...others];
}

function one(clause: Clause, context: TermContext, places: string[]): string {
  const { statement, names } = context;
  switch (clause.kind) {
    case "all":
      return `(${all(clause.of, context, places).join(" and ")})`;
    case "any":
      return `(${clause.of.map((inner) => one(inner, context, places)).join(" or ")})`;
    case "not":
      return `(${one(clause.of, context, places)}) is not true`;
    case "text": {
      const query = textQuery(statement, [clause.text]);
      return either(places.map((column) => `search_words(${column}) @@ ${query}`));
    }
    case "qualifier": {
      const { name, values } = clause;
      if (isScope(name)) {
        const ids = values.flatMap(
          (value) =>
            (name === "repo" ? names.repositories.get(value.toLowerCase()) : names.owners.get(loginOf(value))) ?? [],
        );
        return `r.id = any(${statement.value(ids)}::bigint[])`;
      }
      const term = qualifiers.get(name)?.(values, context);
      if (typeof term !== "string") throw new Error(`The parser let a qualifier through that is none: ${name}`);
      return `(${term})`;
    }
  }
}

/** The repositories and people that a search names: found first, so that Postgres plans it for their ids. */
import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { type AccessScope, MIRRORED_REPOSITORIES, visible } from "../read/repositories.ts";
import { type Clause, qualifiersIn, type SearchQuery, UnknownScopeError } from "./query.ts";

/** The caller who searches: their access, and the user for `@me`; null for anonymous callers. */
export interface Searcher {
  access: AccessScope;
  userId: number | null;
  /** Whether the caller's rights to checks and statuses are known. */
  readsCode: boolean;
}

/** Ids by name in lower case. An unknown name has none. */
export interface SearchNames {
  repositories: Map<string, number[]>;
  owners: Map<string, number[]>;
  users: Map<string, number[]>;
  /** The caller's login in lower case; null for anonymous callers. */
  login: string | null;
}

/** Qualifiers that say in which repositories to search. Several of them widen the search. */
const OWNERS: ReadonlySet<string> = new Set(["user", "org", "owner"]);
const PEOPLE_QUALIFIERS: ReadonlySet<string> = new Set([
  "author",
  "assignee",
  "mentions",
  "commenter",
  "involves",
  "reviewed-by",
  "review-requested",
  "user-review-requested",
]);
const ME = "@me";

export function isScope(name: string): boolean {
  return name === "repo" || OWNERS.has(name);
}

/** As people write accounts: with or without `@`, an app as `app/name`. */
export function loginOf(value: string): string {
  const login = value.toLowerCase();
  if (login === ME) return ME;
  return login.startsWith("app/") ? `${login.slice(4)}[bot]` : login.replace(/^@/, "");
}

/**
 * The repositories, by their names in lower case, to which a search is confined. Null: it is confined to none, or not
 * by their names alone. Pure.
 */
export function namedScope({ clauses }: SearchQuery): ReadonlySet<string> | null {
  return confinedTo({ kind: "all", of: clauses });
}

/** All that may match the clause lies in these. Null: no names confine it. */
function confinedTo(clause: Clause): ReadonlySet<string> | null {
  switch (clause.kind) {
    case "qualifier":
      return clause.name === "repo" ? new Set(clause.values.map((value) => value.toLowerCase())) : null;
    case "any":
      return union(clause.of);
    case "all": {
      const scopes = clause.of.filter((one) => one.kind === "qualifier" && isScope(one.name));
      const others = clause.of.filter((one) => !scopes.includes(one)).map(confinedTo);
      // Several scopes side by side widen the search. Any other clause narrows it.
      return [scopes.length > 0 ? union(scopes) : null, ...others].find((names) => names !== null) ?? null;
    }
    case "not":
    case "text":
      return null;
    default:
      return clause satisfies never;
  }
}

function union(clauses: readonly Clause[]): ReadonlySet<string> | null {
  const all = clauses.map(confinedTo);
  return all.includes(null) ? null : new Set(all.flatMap((names) => [...(names ?? [])]));
}

/**
 * The names, as far as the searcher sees what they name. Like the service, a search leaves out a scope that is not
 * there or not seen, and says nothing of it.
 * @throws UnknownScopeError when none of the repositories and owners to search in is there for the searcher
 */
export async function findSearchNames(db: Database, clauses: Clause[], searcher: Searcher): Promise<SearchNames> {
  const [repositories, owners, people] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const wanted = new Set<string>();
  for (const { name, values, isNegated } of qualifiersIn(clauses)) {
    for (const value of values) {
      if (PEOPLE_QUALIFIERS.has(name)) people.add(loginOf(value));
      if (name === "repo") repositories.add(value.toLowerCase());
      if (OWNERS.has(name)) owners.add(loginOf(value));
      if (isScope(name) && !isNegated) wanted.add(name === "repo" ? value.toLowerCase() : loginOf(value));
    }
  }
  const names: SearchNames = { repositories: new Map(), owners: new Map(), users: new Map(), login: null };
  if (people.size + owners.size > 0) await findPeople(db, [...people, ...owners], searcher, names);
  if (repositories.size + owners.size > 0) await findSeenRepositories(db, repositories, owners, searcher, names);
  const isThere = (name: string) => names.repositories.has(name) || names.owners.has(name);
  if (wanted.size > 0 && ![...wanted].some(isThere)) throw new UnknownScopeError();
  return names;
}

async function findPeople(db: Database, logins: string[], { userId }: Searcher, names: SearchNames): Promise<void> {
  const rows = await db.prepared<{ login: string; id: number }>(sql`
    select folded(u.login) as login, u.id from users u
      where folded(u.login) = any(${logins}::text[]) or u.id = ${userId}`);
  for (const { login, id } of rows) {
    names.users.set(login, [...(names.users.get(login) ?? []), id]);
    if (id === userId) names.login = login;
  }
  if (userId !== null) names.users.set(ME, [userId]);
}

/** An owner counts only through visible repositories: the name alone would reveal that the owner has hidden ones. */
async function findSeenRepositories(
  db: Database,
  fullNames: Set<string>,
  owners: Set<string>,
  { access, userId }: Searcher,
  names: SearchNames,
): Promise<void> {
  const ownerIds = [...owners].flatMap((login) => names.users.get(login) ?? []);
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const rows = await db.prepared<{ id: number; full_name: string; owner_id: number | null }>(sql`
    select r.id, folded(r.full_name) as full_name, r.owner_id from ${tables}
      where ${isMirrored} and ${visible(sql`r`, access, "metadata")}
        and (folded(r.full_name) = any(${[...fullNames]}::text[]) or r.owner_id = any(${ownerIds}::bigint[]))
      order by r.seen_at`);
  for (const row of rows) {
    // For a moment two rows can bear one name; the one seen last has it.
    if (fullNames.has(row.full_name)) names.repositories.set(row.full_name, [row.id]);
  }
  for (const login of owners) {
    const ids = names.users.get(login) ?? [];
    const owned = rows.flatMap(({ id, owner_id }) => (owner_id !== null && ids.includes(owner_id) ? id : []));
    if (owned.length > 0 || (userId !== null && ids.includes(userId))) names.owners.set(login, owned);
  }
}

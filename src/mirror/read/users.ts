import type { Database } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { contains, type PageSource, TEXT } from "./pages.ts";

export interface UserRow {
  id: number;
  login: string;
  /** `User`, `Organization`, `Bot` …; null: never told. */
  type: string | null;
  document: string;
  updatedAt: Date | null;
  /** When upstream last showed it, by our clock. */
  seenAt: Date;
}

const USER_COLUMNS = sql`u.id, u.login, u.type, u.document::text as document, greatest(u.updated_at, u.changed_at) as "updatedAt",
  u.seen_at as "seenAt"`;

export async function findUser(db: Database, id: number): Promise<UserRow | null> {
  const [user] = await db.prepared<UserRow>(sql`
    select ${USER_COLUMNS} from users u where u.id = ${id} and u.deleted_at is null`);
  return user ?? null;
}

/** The account that has this login now, in any case of its letters. */
export async function findUserByLogin(db: Database, login: string): Promise<UserRow | null> {
  // An unheard rename may leave one login on two rows: the newer observation knows who has it now. A webhook may claim
  // any login for an account that upstream has not shown yet.
  const [user] = await db.prepared<UserRow>(sql`
    select ${USER_COLUMNS} from users u where folded(u.login) = ${login.toLowerCase()} and u.deleted_at is null
      order by u.seen_by_read desc, u.seen_at desc limit 1`);
  return user ?? null;
}

/**
 * People who can be assigned, as far as the mirror knows: the owner, present assignees, and authors who wrote as owner,
 * member or collaborator. Upstream's own list may hold more: see `people.ts`. `repository` is its id.
 */
function assignable(repository: SQL): SQL {
  return sql`select r.owner_id as id from repositories r where r.id = ${repository}
    union select a.user_id from issue_assignees a where a.repository_id = ${repository}
    union select i.user_id from issues i where i.repository_id = ${repository} and i.deleted_at is null and ${isInsider(sql`i`)}
    union select c.user_id from issue_comments c where c.repository_id = ${repository} and c.deleted_at is null and ${isInsider(sql`c`)}`;
}

const isInsider = (alias: SQL) => sql`${alias}.author_association in ('OWNER', 'MEMBER', 'COLLABORATOR')`;

/** A page of those who can be assigned, by login, and how many there are. */
export async function findAssignees(
  db: Database,
  repositoryId: number,
  { limit, offset, login }: { limit: number; offset: number; login?: string },
): Promise<{ rows: UserRow[]; total: number }> {
  const conditions = [
    sql`u.id in (${assignable(sql`${repositoryId}`)})`,
    sql`u.deleted_at is null`,
    // Organisations own repositories, and nothing can be assigned to them.
    sql`u.type is distinct from 'Organization'`,
  ];
  if (login !== undefined) conditions.push(sql`folded(u.login) = ${login.toLowerCase()}`);
  const rows = await db.prepared<UserRow & { total: number }>(sql`
    select ${USER_COLUMNS}, count(*) over () as total from users u where ${sql.and(conditions)}
      order by folded(u.login), u.id limit ${limit} offset ${offset}`);
  const [first] = rows;
  if (first || offset === 0) return { rows, total: first?.total ?? 0 };
  const { total } = await findAssignees(db, repositoryId, {
    limit: 1,
    offset: 0,
    ...(login === undefined ? {} : { login }),
  });
  return { rows: [], total };
}

/** By login, like REST's list; only people are of the type `User`. `isWhole`: as upstream lists them. */
export function assignableUserSource({ query, isWhole }: { query?: string | null; isWhole: boolean }): PageSource {
  const listed = sql`select l.id from listed_people l where l.repository_id = x.r and l.owner_id = 0 and l.list = 'assignees'`;
  return {
    from: sql`users u`,
    isFiltered: query != null,
    repositoryId: sql`0`,
    document: sql`u.document`,
    conditions: [
      sql`u.id in (${isWhole ? listed : assignable(sql`x.r`)}) and u.deleted_at is null and coalesce(u.type, 'User') = 'User'`,
      ...contains([sql`u.login`, sql`u.name`], query),
    ],
    key: sql`folded(u.login)`,
    keyType: TEXT,
    rowId: sql`u.id`,
    direction: "asc",
  };
}

import type { Database } from "./database.ts";
import { sql } from "./sql.ts";

/** A login of Postgres that reads some repositories only, through the views of `tain_v1`. */
export interface LimitedReader {
  role: string;
  /** The full names of its repositories, in order. */
  repositories: string[];
  /** False: the role was dropped by hand, and its rows are left. */
  isThere: boolean;
}

/** A name that needs no quotes, and that neither Postgres nor a role of ours has. Pure. */
export function isReaderName(name: string): boolean {
  return /^[a-z][a-z0-9_]{0,62}$/.test(name) && !/^(pg|tain)_/.test(name);
}

/** Queries that take longer are stopped. An operator may change it: `alter role … set statement_timeout`. */
const LONGEST_QUERY = "60s";

/** Connections of one login. Each may hold what it locks, and there are few of them. */
const MOST_CONNECTIONS = 5;

/**
 * Makes a role that logs in and reads these repositories only. Answers whether it may name the tables, since then it can
 * lock them, and stop the mirror: by a right that Postgres gives everybody, and that only the schema's owner takes away.
 * @param reader.name as `isReaderName` takes it
 * @param reader.password hexadecimal
 * @throws pg.DatabaseError 42710 if there is a role of this name, 42501 if the connection's user may make none
 */
export async function createReader(
  db: Database,
  { name, password, repositoryIds }: { name: string; password: string; repositoryIds: readonly number[] },
): Promise<{ mayLock: boolean }> {
  const role = sql.identifier(name);
  return await db.transaction(async (tx) => {
    const limit = sql.script(`connection limit ${MOST_CONNECTIONS}`);
    await tx.query(sql`create role ${role} login ${limit} password ${sql.script(`'${password}'`)}`);
    await tx.query(sql`alter role ${role} set search_path = tain_v1`);
    await tx.query(sql`alter role ${role} set default_transaction_read_only = on`);
    await tx.query(sql`alter role ${role} set statement_timeout = ${sql.script(`'${LONGEST_QUERY}'`)}`);
    // Each migration grants these again: db/roles/reader.sql.
    await tx.query(sql`grant usage on schema tain_v1 to ${role}`);
    await tx.query(sql`grant select on all tables in schema tain_v1 to ${role}`);
    await tx.query(sql`
      insert into reader_repositories (repository_id, role) select id, ${name} from unnest(${repositoryIds}::bigint[]) id`);
    const [row] = await tx.query<{ mayLock: boolean }>(
      sql`select has_schema_privilege(${name}, 'public', 'usage') as "mayLock"`,
    );
    return { mayLock: row?.mayLock ?? true };
  });
}

export async function listReaders(db: Database): Promise<LimitedReader[]> {
  return await db.query<LimitedReader>(sql`
    select g.role, array_agg(coalesce(r.full_name, g.repository_id::text) order by r.full_name) as repositories,
        exists (select from pg_roles o where o.rolname = g.role) as "isThere"
      from reader_repositories g left join repositories r on r.id = g.repository_id group by g.role order by g.role`);
}

/** Drops the role, if it is there, and forgets it. @throws pg.DatabaseError 2BP01 if it owns something, or has other rights */
export async function dropReader(db: Database, { role: name, isThere }: LimitedReader): Promise<void> {
  const role = sql.identifier(name);
  await db.transaction(async (tx) => {
    await tx.query(sql`delete from reader_repositories where role = ${name}`);
    if (!isThere) return;
    await tx.query(sql`revoke all on all tables in schema tain_v1 from ${role}`);
    await tx.query(sql`revoke all on schema tain_v1 from ${role}`);
    await tx.query(sql`drop role ${role}`);
  });
}

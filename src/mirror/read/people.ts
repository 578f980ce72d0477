import type { Queries } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Fields } from "../../json.ts";
import { REPLICA_LAG_MS } from "../store/merge-rule.ts";
import { isOfPeopleList, type PeopleListKey } from "../store/people.ts";
import { findEach } from "./each.ts";

/** Of a row `l` of `people_lists`: something changed that a replica which answered the last read may not have known. */
export const isHeardSince = sql`(l.heard_at is not null
  and l.heard_at + ${`${REPLICA_LAG_MS} milliseconds`}::interval >= l.read_at)`;

/** A list that is here: when it was read, and whether nothing was told since. */
export interface HeldPeople {
  readAt: Date;
  isCurrent: boolean;
}

/**
 * Null: the list is not here, or is of the time before the repository came to another owner. That of an organisation is kept
 * up while one of its repositories is mirrored with its people.
 */
export async function findHeldPeople(db: Queries, key: PeopleListKey): Promise<HeldPeople | null> {
  const [held] = await findEachHeldPeople(db, [key]);
  return held ?? null;
}

/** The same of many lists, with one statement, in the keys' order. */
export async function findEachHeldPeople(
  db: Queries,
  keys: readonly PeopleListKey[],
): Promise<readonly (HeldPeople | null)[]> {
  return await findEach<HeldPeople>(
    db,
    keys,
    ["repositoryId", "ownerId", "list"],
    (x) => sql`
    select x.at, l.read_at as "readAt", not ${isHeardSince} as "isCurrent"
      from ${x} join people_lists l on l.repository_id = x.repository_id and l.owner_id = x.owner_id and l.list = x.list
      where l.read_at is not null
        and exists (select from repositories r join repository_syncs s on s.repository_id = r.id
          where r.owner_id = l.home_id and l.repository_id in (0, r.id) and ${MIRRORED} and 'people' = any(s.mirrors))`,
  );
}

/** A row of a list: a person's account under `user`, or a team. */
export interface ListedOne {
  id: number;
  /** Of a team. */
  slug: string | null;
  role: string | null;
  /** Of a team: whether upstream may hide it from members of the organisation. */
  isSecret: boolean | null;
  document: string;
  /** What the list says of a person beside the account. */
  own: Fields | null;
}

const ROW = sql`l.id, l.slug, l.role, l.is_secret as "isSecret", l.document::text as document, l.own`;

/** A page of a list in upstream's order, and how many rows it has. `where`: further conditions on a row `l`. */
export async function findListedPeople(
  db: Queries,
  key: PeopleListKey,
  { where = sql`true`, limit, offset }: { where?: SQL; limit: number; offset: number },
): Promise<{ rows: ListedOne[]; total: number }> {
  const matching = sql`from listed_people l where ${isOfPeopleList(key)} and ${where}`;
  const [counted] = await db.prepared<{ total: number }>(sql`select count(*) as total ${matching}`);
  const rows = await db.prepared<ListedOne>(sql`
    select ${ROW} ${matching} order by l.position limit ${limit} offset ${offset}`);
  return { rows, total: counted?.total ?? 0 };
}

/** The account or team of this id in a list; null: it is not there. */
export async function findOneListed(db: Queries, key: PeopleListKey, id: number): Promise<ListedOne | null> {
  const [row] = await db.prepared<ListedOne>(sql`
    select ${ROW} from listed_people l where ${isOfPeopleList(key)} and l.id = ${id} limit 1`);
  return row ?? null;
}

/** The team of this name in addresses; null: an organisation's list has none. */
export async function findTeamBySlug(db: Queries, key: PeopleListKey, slug: string): Promise<ListedOne | null> {
  const [row] = await db.prepared<ListedOne>(sql`
    select ${ROW} from listed_people l where ${isOfPeopleList(key)} and l.slug = ${slug.toLowerCase()} limit 1`);
  return row ?? null;
}

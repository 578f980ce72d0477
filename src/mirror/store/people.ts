import type { Queries, Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { type Fields, wholeOf } from "../../json.ts";
import { literalOf } from "../../kinds/contract/placeholders.ts";
import { isOfSimpleUser } from "../../kinds/user/kind.ts";
import { mergeObserved } from "./merge.ts";
import { joinObserved, observeListed, type Sighting } from "./observation.ts";

/** The lists of people and teams, by whose they are. "team" is the team alone, of which upstream then shows more. */
export const PEOPLE_LISTS = {
  repository: ["assignees", "collaborators", "teams"],
  organization: ["organization teams", "members", "owners", "public members"],
  team: ["team", "team members"],
} as const;
type Lists = typeof PEOPLE_LISTS;
export type PeopleListName = Lists[keyof Lists][number];

/** Those whose rows are teams. */
const OF_TEAMS: ReadonlySet<PeopleListName> = new Set(["teams", "organization teams", "team"]);

/** `repositoryId` 0: the list of an organisation or team, whose id is `ownerId`. Otherwise that is 0. */
export interface PeopleListKey {
  repositoryId: number;
  ownerId: number;
  list: PeopleListName;
}

export function listOfRepository(repositoryId: number, list: Lists["repository"][number]): PeopleListKey {
  return { repositoryId, ownerId: 0, list };
}

export function listOfOrganization(ownerId: number, list: Lists["organization"][number]): PeopleListKey {
  return { repositoryId: 0, ownerId, list };
}

export function listOfTeam(ownerId: number, list: Lists["team"][number]): PeopleListKey {
  return { repositoryId: 0, ownerId, list };
}

/** Of a row `l` of `people_lists` or `listed_people`: it is, or belongs to, this list. */
export function isOfPeopleList({ repositoryId, ownerId, list }: PeopleListKey): SQL {
  return sql`(l.repository_id = ${repositoryId} and l.owner_id = ${ownerId} and l.list = ${list})`;
}

/**
 * What lists say of a person beside the account, in GitHub's OpenAPI: of a collaborator, and of a member of a team. It is
 * of the person, and never of the reader. What else upstream may add tomorrow is left out.
 */
const OWN_KEYS: ReadonlySet<string> = new Set(["permissions", "role_name", "role", "inherited"]);

function keysWith(row: Fields, isWanted: (key: string) => boolean): Fields {
  return Object.fromEntries(Object.entries(row).filter(([key]) => isWanted(key)));
}

/** A page of a list: its rows, or null if it is as it was. */
export interface PeoplePage {
  rows: readonly Fields[] | null;
  seenAt: Date;
}

/**
 * Stores a list that was read to its end: the pages that have changed, each in its place. Nothing of it is stored if a read
 * that began later was stored first. Rows without an id are left out.
 * @param pageSize how many rows each page has but the last
 */
export async function storePeople(
  tx: Transaction,
  key: PeopleListKey,
  {
    pages,
    pageSize,
    startedAt,
    sighting,
  }: {
    pages: readonly PeoplePage[];
    pageSize: number;
    startedAt: Date;
    sighting: (seenAt: Date) => Sighting;
  },
): Promise<"stored" | "older"> {
  const { repositoryId, ownerId, list } = key;
  const isOfTeams = OF_TEAMS.has(list);
  const read = pages.map(
    ({ rows, seenAt }) =>
      rows?.flatMap((fields) => {
        const id = wholeOf(fields.id);
        return id === null ? [] : [listedRow(fields, id, isOfTeams, sighting(seenAt))];
      }) ?? null,
  );
  await mergeObserved(tx, joinObserved(read.flatMap((rows) => rows?.map(({ embedded }) => embedded) ?? [])));
  // Two repositories of one organisation may read its lists at once. Deliveries, too, lock accounts before lists.
  const [row] = await tx.query<{ isOlder: boolean }>(sql`
    select coalesce(l.read_at > ${startedAt}, false) as "isOlder" from people_lists l where ${isOfPeopleList(key)} for update`);
  if (!row || row.isOlder) return "older";
  for (const [at, rows] of read.entries()) {
    if (rows === null) continue;
    const start = at * pageSize;
    await tx.query(sql`delete from listed_people l where ${isOfPeopleList(key)}
      and l.position >= ${start} and l.position < ${start + pageSize}`);
    const written = rows.map(({ embedded: _, ...one }, place) => ({ p: start + place, ...one }));
    await tx.query(sql`
      insert into listed_people (repository_id, owner_id, list, position, id, slug, role, is_secret, document, own)
        select ${repositoryId}, ${ownerId}, ${list}, x.p, x.id, x.slug, x.role, x.s, x.document::json, x.own::json
          from json_to_recordset(${sql.json(written)})
            as x(p integer, id bigint, slug text, role text, s boolean, document text, own text)`);
  }
  await tx.query(sql`
    delete from listed_people l where ${isOfPeopleList(key)} and l.position >= ${pages.length * pageSize}`);
  // Rows may have moved between the pages while they were read, so the list is read once more.
  const isStable = pages.length === 1 || pages.every(({ rows }) => rows === null);
  const heard = isStable ? sql`` : sql`, heard_at = ${tx.now()}`;
  await notePeople(tx, key, sql`read_at = ${startedAt}, refused_at = null ${heard}`);
  if (repositoryId > 0) tx.touch([repositoryId]);
  return "stored";
}

function listedRow(fields: Fields, id: number, isTeam: boolean, at: Sighting) {
  const { slug = null, permission = null, role_name = null, role = role_name } = fields;
  const shown = isTeam ? fields : { user: keysWith(fields, isOfSimpleUser) };
  const own = isTeam ? null : keysWith(fields, (key) => OWN_KEYS.has(key));
  const { fields: document, embedded } = observeListed(shown, at);
  const plain = (value: typeof slug) => (typeof value === "string" ? literalOf(value) : null);
  return {
    ...{ id, slug: isTeam ? plain(slug) : null, role: plain(isTeam ? permission : role), embedded },
    // Whatever upstream does not call closed may be hidden from members.
    s: isTeam ? fields.privacy !== "closed" : null,
    document: JSON.stringify(document),
    own: own && Object.keys(own).length > 0 ? JSON.stringify(own) : null,
  };
}

/** Upstream does not show the list to the mirror: what is here of it can be kept up no longer. */
export async function forgetPeople(tx: Transaction, key: PeopleListKey, refusedAt: Date): Promise<void> {
  await tx.query(sql`delete from listed_people l where ${isOfPeopleList(key)}`);
  await notePeople(tx, key, sql`read_at = null, refused_at = ${refusedAt}`);
  if (key.repositoryId > 0) tx.touch([key.repositoryId]);
}

async function notePeople(tx: Transaction, key: PeopleListKey, set: SQL): Promise<void> {
  await tx.query(sql`update people_lists l set ${set} where ${isOfPeopleList(key)}`);
}

/** A list, and by whose id upstream shows it: of a repository the owner, of a team its organisation. */
export interface KnownPeopleList extends PeopleListKey {
  homeId: number;
}

/** Makes lists known, which are then due. One whose repository has another owner by now is due, too. */
export async function beginPeople(db: Queries, lists: readonly KnownPeopleList[]): Promise<void> {
  const x = lists.map(({ repositoryId: r, ownerId: o, list: l, homeId: h }) => ({ r, o, l, h }));
  await db.query(sql`
    insert into people_lists as l (repository_id, owner_id, list, home_id)
      select r, o, l, h from json_to_recordset(${sql.json(x)}) as x(r bigint, o bigint, l text, h bigint) order by 1, 2, 3
      on conflict (repository_id, owner_id, list) do update
        set home_id = excluded.home_id, read_at = null, refused_at = null where l.home_id <> excluded.home_id`);
}

/** Forgets the lists of people `l` that are of this kind. */
export async function dropPeople(tx: Transaction, areDropped: SQL): Promise<void> {
  await tx.query(sql`delete from listed_people l where ${areDropped}`);
  await tx.query(sql`delete from people_lists l where ${areDropped}`);
}

/** Notes that upstream told of a change of lists `l`. Answers whose lists these are. */
export async function hearPeople(
  tx: Transaction,
  areHeard: SQL,
  at: Date,
): Promise<Pick<KnownPeopleList, "repositoryId" | "homeId">[]> {
  const rows = await tx.query<Pick<KnownPeopleList, "repositoryId" | "homeId">>(sql`
    with x as (select l.repository_id, l.owner_id, l.list from people_lists l where ${areHeard} order by 1, 2, 3 for update of l)
    update people_lists l set heard_at = ${at} from x
      where l.repository_id = x.repository_id and l.owner_id = x.owner_id and l.list = x.list
      returning l.repository_id as "repositoryId", l.home_id as "homeId"`);
  tx.touch(rows.flatMap(({ repositoryId }) => (repositoryId > 0 ? [repositoryId] : [])));
  return rows;
}

import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import {
  beginPeople,
  dropPeople,
  isOfPeopleList,
  type KnownPeopleList,
  listOfOrganization,
  listOfRepository,
  listOfTeam,
  PEOPLE_LISTS,
} from "../../mirror/store/people.ts";
import type { Whole } from "../wholes/whole.ts";
import { hearToldPeople } from "./heard.ts";
import { isPeopleListDue, isSpeaker, PEOPLE_PATHS } from "./lists.ts";
import { fetchAndStorePeople } from "./read.ts";

/** How many lists one job reads. An organisation may have hundreds of teams. */
const LISTS_AT_ONCE = 50;

/**
 * The lists of people of a repository, and of the organisation that owns it: its repositories share these, and any of them
 * may have them read.
 */
export const peopleWhole: Whole = {
  kind: "people",
  parts: ["people"],
  due: ({ clock }) => {
    const own = sql`from people_lists l where l.repository_id = r.id`;
    const isDue = isPeopleListDue(clock.now());
    return {
      isDue: sql`(not exists (select ${own}) or exists (select ${own} and (${isDue} or l.home_id <> r.owner_id))
        or (${isSpeaker} and exists (select from people_lists l where l.repository_id = 0 and l.home_id = r.owner_id and ${isDue})))`,
      confirmedAt: sql`(select min(l.read_at) ${own})`,
    };
  },
  hear: hearToldPeople,
  read: async (ctx, { repository, now }) => {
    let left = LISTS_AT_ONCE;
    // The list of teams may tell of new ones, whose people are not here yet.
    for (let due = await findDue(ctx, repository.id, now); ; due = await findDue(ctx, repository.id, now)) {
      for (const list of due.slice(0, left))
        await fetchAndStorePeople(ctx, repository, {
          ...{ key: list, path: PEOPLE_PATHS[list.list](list), isHeld: list.isHeld },
        });
      left -= due.length;
      if (due.length === 0 || left <= 0) break;
    }
    const isDone = left >= 0 && (await findDue(ctx, repository.id, null)).length === 0;
    return { isDone, goesOn: left < 0 };
  },
};

interface DueList extends KnownPeopleList {
  isHeld: boolean;
}

/**
 * The lists that are due, of a repository and of its owner.
 * @param before without those that were read since then
 */
async function findDue(ctx: Context, repositoryId: number, before: Date | null): Promise<DueList[]> {
  return await ctx.db.transaction(async (tx) => {
    const [home] = await tx.query<{ id: number; isOrganization: boolean }>(sql`
      select r.owner_id as id, u.type = 'Organization' as "isOrganization"
        from repositories r join users u on u.id = r.owner_id where r.id = ${repositoryId}`);
    if (!home) return [];
    const { id: homeId, isOrganization } = home;
    const lists = PEOPLE_LISTS.repository.filter((list) => isOrganization || list !== "teams");
    await beginPeople(
      tx,
      lists.map((list) => ({ ...listOfRepository(repositoryId, list), homeId })),
    );
    if (isOrganization) await beginOrganization(tx, homeId);
    else await dropPeople(tx, isOfPeopleList(listOfRepository(repositoryId, "teams")));
    const isBefore: SQL = before
      ? sql`greatest(l.read_at, l.refused_at) is null or greatest(l.read_at, l.refused_at) < ${before}`
      : sql`true`;
    return await tx.query<DueList>(sql`
      select l.repository_id as "repositoryId", l.owner_id as "ownerId", l.list, l.home_id as "homeId",
          l.read_at is not null as "isHeld"
        from people_lists l where (l.repository_id = ${repositoryId} or (l.repository_id = 0 and l.home_id = ${homeId}))
          and ${isPeopleListDue(ctx.clock.now())} and (${isBefore}) order by l.repository_id desc, l.list, l.owner_id`);
  });
}

/** The lists of an organisation, and of the teams that its list has. Those of teams that are gone are forgotten. */
async function beginOrganization(tx: Transaction, homeId: number): Promise<void> {
  const teams = await tx.query<{ id: number }>(sql`
    select l.id from listed_people l where ${isOfPeopleList(listOfOrganization(homeId, "organization teams"))}`);
  await beginPeople(tx, [
    ...PEOPLE_LISTS.organization.map((list) => ({ ...listOfOrganization(homeId, list), homeId })),
    ...teams.flatMap(({ id }) => PEOPLE_LISTS.team.map((list) => ({ ...listOfTeam(id, list), homeId }))),
  ]);
  const ids = teams.map(({ id }) => id);
  await dropPeople(
    tx,
    sql`(l.list in ('team', 'team members') and l.repository_id = 0 and not l.owner_id = any(${ids}::bigint[])
    and exists (select from people_lists h where h.repository_id = 0 and h.owner_id = l.owner_id and h.list = l.list and h.home_id = ${homeId}))`,
  );
}

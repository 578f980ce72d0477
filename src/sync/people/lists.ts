import { type SQL, sql } from "../../../db/sql.ts";
import { isHeardSince } from "../../mirror/read/people.ts";
import type { KnownPeopleList, PeopleListName } from "../../mirror/store/people.ts";
import { PER_PAGE } from "../reads/pages.ts";

const HOUR = 60 * 60_000;

/** Where upstream shows a list. By ids, so that no rename leads elsewhere (GitHub docs, "Teams"; `Link` of members). */
export const PEOPLE_PATHS: Readonly<Record<PeopleListName, (list: KnownPeopleList) => string>> = {
  assignees: ({ repositoryId: id }) => `/repositories/${id}/assignees?${PER_PAGE}`,
  collaborators: ({ repositoryId: id }) => `/repositories/${id}/collaborators?${PER_PAGE}`,
  teams: ({ repositoryId: id }) => `/repositories/${id}/teams?${PER_PAGE}`,
  "organization teams": ({ homeId: id }) => `/organizations/${id}/teams?${PER_PAGE}`,
  members: ({ homeId: id }) => `/organizations/${id}/members?${PER_PAGE}`,
  owners: ({ homeId: id }) => `/organizations/${id}/members?role=admin&${PER_PAGE}`,
  "public members": ({ homeId: id }) => `/organizations/${id}/public_members?${PER_PAGE}`,
  team: ({ homeId, ownerId }) => `/organizations/${homeId}/team/${ownerId}`,
  "team members": ({ homeId, ownerId }) => `/organizations/${homeId}/team/${ownerId}/members?${PER_PAGE}`,
};

/**
 * How often a list is read in any case. Only an organisation's own hook, or an App, hears of its teams; and no event tells
 * that somebody makes their membership public.
 */
const EVERY_MS: Readonly<Partial<Record<PeopleListName, number>>> = { team: 6 * HOUR, "team members": 6 * HOUR };

/** Of a row `l` of `people_lists`: upstream has to be asked for the list. One that it refuses is asked for as seldom. */
export function isPeopleListDue(now: Date): SQL {
  const rare = Object.entries(EVERY_MS);
  const before = (ms: number) => sql`${new Date(now.getTime() - ms)}::timestamptz`;
  const since = sql`case l.list ${sql.join(
    rare.map(([list, ms]) => sql`when ${list} then ${before(ms)}`),
    " ",
  )} else ${before(HOUR)} end`;
  return sql`(case when l.refused_at is not null then l.refused_at <= ${since}
    else l.read_at is null or l.read_at <= ${since} or ${isHeardSince} end)`;
}

/** Of a repository `r`: it has the lists of its organisation read, for all repositories of that. */
export const isSpeaker = sql`(not exists (select from repositories b join repository_syncs c on c.repository_id = b.id
  where b.owner_id = r.owner_id and b.id < r.id and c.state = 'live' and 'people' = any(c.mirrors)))`;

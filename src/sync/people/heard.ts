import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { afterLag, type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import { hearPeople } from "../../mirror/store/people.ts";
import type { MergedDeliveries } from "../events/read.ts";
import { isSpeaker } from "./lists.ts";

/**
 * Notes which lists deliveries told of. Answers a mark for each repository that is to read some: upstream is asked once no
 * replica lags. What somebody may do in a repository follows from their teams, and from being a member.
 */
export async function hearToldPeople(tx: Transaction, { shown, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const told = shown.flatMap(({ repositoryId, toldPeople }) =>
    toldPeople ? [{ r: repositoryId, o: toldPeople.organizationId, t: toldPeople.teamId }] : [],
  );
  if (told.length === 0) return [];
  const x = sql`json_to_recordset(${sql.json(told)}) as x(r bigint, o bigint, t bigint)`;
  const ofTeam = sql`exists (select from listed_people p
    where p.repository_id = l.repository_id and p.owner_id = 0 and p.list = 'teams' and p.id = x.t)`;
  const heard = await hearPeople(
    tx,
    sql`exists (select from ${x} where l.repository_id = x.r
      or (l.home_id = coalesce(x.o, (select r.owner_id from repositories r where r.id = x.r and x.t is not null))
        and case when l.list in ('team', 'team members') then coalesce(l.owner_id = x.t, x.r is null)
          else l.repository_id = 0 or (x.r is null and (x.t is null or ${ofTeam})) end))`,
    askedAt,
  );
  if (heard.length === 0) return [];
  const rows = await tx.query<{ id: number }>(sql`
    select r.id from repositories r join repository_syncs s on s.repository_id = r.id
      where 'people' = any(s.mirrors) and s.state = 'live' and (r.id = any(${heard.map(({ repositoryId }) => repositoryId)}::bigint[])
        or (r.owner_id = any(${heard.flatMap(({ repositoryId, homeId }) => (repositoryId === 0 ? [homeId] : []))}::bigint[]) and ${isSpeaker}))
      order by r.id`);
  return rows.map(({ id }) => ({ ...repositoryMark("people", id, askedAt), notBefore: afterLag(askedAt) }));
}

/** Those of these organisations whose people are mirrored. */
export async function findHeldOrganizations(tx: Transaction, ids: readonly number[]): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set();
  const rows = await tx.prepared<{ id: number }>(sql`
    select distinct l.home_id as id from people_lists l
      where l.repository_id = 0 and l.home_id = any(${sql.array(ids, "bigint")}::bigint[])`);
  return new Set(rows.map(({ id }) => id));
}

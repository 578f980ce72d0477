import type { Queries } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";

/** An event as the log has it, without its payload. */
export interface LoggedEvent {
  /** Its place in the log. */
  id: number;
  /** 0: the event concerns no repository. */
  repositoryId: number;
  guid: string;
  event: string;
  action: string | null;
  receivedAt: Date;
  /** Whether the mirror made the event, of a change that no webhook reported. */
  isMade: boolean;
}

/** Which events are asked for; null: all. */
export interface EventFilter {
  repositoryIds: readonly number[] | null;
  events: readonly string[] | null;
  actions: readonly string[] | null;
}

/** The events of a part of the log, in order. */
export async function readEvents(
  db: Queries,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
  { repositoryIds, events, actions }: EventFilter,
): Promise<LoggedEvent[]> {
  const conditions = [
    sql`id > ${after} and id <= ${upTo}`,
    ...(repositoryIds ? [sql`repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[])`] : []),
    ...(events ? [sql`event = any(${sql.array(events, "text")}::text[])`] : []),
    ...(actions ? [sql`action = any(${sql.array(actions, "text")}::text[])`] : []),
  ];
  return await db.prepared<LoggedEvent>(sql`
    select id::float8 as id, repository_id::float8 as "repositoryId", guid, event, action, received_at as "receivedAt",
        is_made as "isMade"
      from events where ${sql.and(conditions)} order by id limit ${limit}`);
}

/** The payloads of the first of these events, as many as fit into the bytes. At least one, if it is still kept. */
export async function readPayloads(
  db: Queries,
  ids: readonly number[],
  mostBytes: number,
): Promise<Map<number, Buffer>> {
  const rows = await db.prepared<{ id: number; payload: Buffer }>(
    sql`select id::float8 as id, payload from event_payloads(${sql.array(ids, "bigint")}, ${mostBytes})`,
  );
  return new Map(rows.map(({ id, payload }) => [id, payload]));
}

/** A reader that has read up to this place has missed nothing: every later event is still kept. */
export async function keptAfter(db: Queries): Promise<number> {
  const [row] = await db.prepared<{ id: number }>(sql`
    select coalesce((select pruned_id from event_log), (select min(id) - 1 from events),
      (select case when is_called then last_value else 0 end from event_place))::float8 as id`);
  return row?.id ?? 0;
}

/** An issue or pull request that an event is about. */
export interface Change {
  /** The event's place in the log. */
  id: number;
  number: number;
}

/** Which changes are asked for. */
export interface ChangesOf {
  repositoryId: number;
  kind: "issue" | "pull_request";
}

/** The issues, or pull requests, that events of a part of the log are about, in order. */
export async function readChanges(
  db: Queries,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
  { repositoryId, kind }: ChangesOf,
): Promise<Change[]> {
  return await db.prepared<Change>(sql`
    select id::float8 as id, number from events
      where repository_id = ${repositoryId} and id > ${after} and id <= ${upTo} and number is not null
        and is_pull_request = ${kind === "pull_request"} order by id limit ${limit}`);
}

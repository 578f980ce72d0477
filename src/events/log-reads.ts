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
  /** Whether its repository was private when it was logged. */
  wasPrivate: boolean;
}

/**
 * Whether the repository of an event `e` was private then. A process of an older version did not say. Then it was, if
 * the repository was published later.
 */
const WAS_PRIVATE = sql`coalesce(e.was_private, exists (select from events p
  where p.repository_id = e.repository_id and p.id > e.id
    and (p.event = 'public' or (p.event = 'repository' and p.action = 'publicized'))))`;

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
    sql`e.id > ${after} and e.id <= ${upTo}`,
    ...(repositoryIds ? [sql`e.repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[])`] : []),
    ...(events ? [sql`e.event = any(${sql.array(events, "text")}::text[])`] : []),
    ...(actions ? [sql`e.action = any(${sql.array(actions, "text")}::text[])`] : []),
  ];
  return await db.prepared<LoggedEvent>(sql`
    select e.id, e.repository_id as "repositoryId", e.guid, e.event, e.action,
        e.received_at as "receivedAt", e.is_made as "isMade", ${WAS_PRIVATE} as "wasPrivate"
      from events e where ${sql.and(conditions)} order by e.id limit ${limit}`);
}

/** The payloads of the first of these events, as many as fit into the bytes. At least one, if it is still kept. */
export async function readPayloads(
  db: Queries,
  ids: readonly number[],
  mostBytes: number,
): Promise<Map<number, Buffer>> {
  const rows = await db.prepared<{ id: number; payload: Buffer }>(
    sql`select id, payload from event_payloads(${sql.array(ids, "bigint")}, ${mostBytes})`,
  );
  return new Map(rows.map(({ id, payload }) => [id, payload]));
}

/**
 * A reader that has read up to this place has missed nothing: every later event is still kept. The places that are seen
 * say nothing of it: transactions that end later, or never, give out places, too.
 */
export async function keptAfter(db: Queries): Promise<number> {
  const [row] = await db.prepared<{ id: number }>(sql`select pruned_id as id from event_log`);
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
  /** Whether the reader has the right there, also while the repository is private. */
  seesPrivate: boolean;
}

/** Readers who may not see a private repository get its changes too: looking them up ends their streams. */
const IS_PRIVATE = sql`exists (select from repositories r where r.id = e.repository_id and r.private)`;

/** The issues, or pull requests, that events of a part of the log are about, in order. */
export async function readChanges(
  db: Queries,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
  { repositoryId, kind, seesPrivate }: ChangesOf,
): Promise<Change[]> {
  return await db.prepared<Change>(sql`
    select e.id, e.number from events e
      where e.repository_id = ${repositoryId} and e.id > ${after} and e.id <= ${upTo} and e.number is not null
        and e.is_pull_request = ${kind === "pull_request"} and (${seesPrivate} or not ${WAS_PRIVATE} or ${IS_PRIVATE})
      order by e.id limit ${limit}`);
}

import type { Database, Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { REPLICA_LAG_MS } from "../store/merge-rule.ts";
import type { IssuePlace } from "../store/transfers.ts";
import { findEach } from "./each.ts";
import { type CountedBounds, findNumberedPage } from "./numbered-pages.ts";
import type { PageSource } from "./pages.ts";
import { BY_CREATION, resourceSource } from "./resources.ts";

/** How a list of events is held. */
export interface HeldEvents {
  /** When upstream was last asked for it, by our clock. */
  readAt: Date;
  /** Whether nothing is known to have happened since. */
  isCurrent: boolean;
}

/** What changed within the replicas' lag may have been read too early. */
const LAG = sql`${`${REPLICA_LAG_MS} milliseconds`}::interval`;

/** When a webhook last told of a row, by our clock: upstream's may differ. */
function toldAt(row: "i" | "p"): SQL {
  return sql`case when not ${sql.identifier(`${row}.seen_by_read`)} then ${sql.identifier(`${row}.seen_at`)} end`;
}

/**
 * How the events of each of these issues are held. Null: they are not all here. What happens to an issue changes its row or
 * its pull request's, except for references by commits: nothing tells of these before the list is read again.
 */
export async function findHeldEvents(db: Queries, places: readonly IssuePlace[]): Promise<(HeldEvents | null)[]> {
  return await findEach<HeldEvents>(
    db,
    places,
    ["repositoryId", "number"],
    (x) => sql`
    select x.at, l.read_at as "readAt",
        l.read_at > greatest(i.created_at, i.changed_at, p.changed_at, ${toldAt("i")}, ${toldAt("p")}) + ${LAG} as "isCurrent"
      from ${x} join issue_event_lists l on l.repository_id = x.repository_id and l.read_at is not null
      join issues i on i.repository_id = x.repository_id and i.number = x.number
        and (l.begins_at is null or i.created_at > l.begins_at)
      left join pull_requests p on p.repository_id = x.repository_id and p.number = x.number`,
  );
}

/** The same of all that happened in a repository, as far as upstream lists it. */
export async function findHeldList(db: Queries, repositoryId: number): Promise<HeldEvents | null> {
  const since = (table: "issues" | "pull_requests") => sql`exists (select from ${sql.identifier(table)} t
    where t.repository_id = l.repository_id and t.updated_at >= l.read_at - ${LAG})`;
  const [row] = await db.prepared<HeldEvents>(sql`
    select l.read_at as "readAt", not (${since("issues")} or ${since("pull_requests")}) as "isCurrent"
      from issue_event_lists l where l.repository_id = ${repositoryId} and l.read_at is not null`);
  return row ?? null;
}

/** An event, and the issue that it happened to. */
export interface FoundEvent extends StoredDocument {
  number: number;
}

/** Which events: of one issue with the oldest first, or of a whole repository with the newest first. */
export interface EventList {
  number?: number;
  /** Only those of issues, or of pull requests. Absent: both. */
  under?: "issues" | "pulls";
}

/** A page of events, and how many there are. */
export async function findIssueEvents(
  db: Database,
  repositoryId: number,
  { number, under, ...page }: EventList & CountedBounds,
): Promise<{ rows: FoundEvent[]; total: number }> {
  const isOfIssue = number === undefined ? sql`true` : sql`t.issue_number = ${number}`;
  const isUnder = under === undefined ? sql`true` : sql`i.is_pull_request = ${under === "pulls"}`;
  const matching = sql`from issue_events t
    join issues i on i.repository_id = t.repository_id and i.number = t.issue_number and i.id is not null
    where t.repository_id = ${repositoryId} and t.deleted_at is null and ${isOfIssue} and ${isUnder}`;
  const order = number === undefined ? sql`t.id desc` : sql`t.id`;
  const more = sql`, t.issue_number as number`;
  return await findNumberedPage<{ number: number }>(db, repositoryId, { matching, order, more, ...page });
}

export async function findIssueEvent(
  db: Queries,
  repositoryId: number,
  id: number,
): Promise<(FoundEvent & { isPull: boolean; createdAt: Date }) | null> {
  const [row] = await db.prepared<{ document: string; number: number; isPull: boolean; createdAt: Date }>(sql`
    select t.document::text as document, t.issue_number as number, i.is_pull_request as "isPull", t.created_at as "createdAt"
      from issue_events t
      join issues i on i.repository_id = t.repository_id and i.number = t.issue_number and i.id is not null
      where t.repository_id = ${repositoryId} and t.id = ${id} and t.deleted_at is null`);
  return row ? { repositoryId, ...row } : null;
}

/** The events of these kinds, as REST names them, of an issue or pull request. @param since not older than this; null: all */
export function eventSource(events: readonly string[], since: string | null): PageSource {
  const among = [
    sql`t.issue_number = x.n and t.event = any(${[...events]}::text[])`,
    ...(since === null ? [] : [sql`t.created_at >= ${since}::timestamptz`]),
  ];
  return resourceSource("issue_event", { among, ...BY_CREATION, direction: "asc" });
}

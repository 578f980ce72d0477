import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, sql } from "../../../db/sql.ts";
import { contains, direction, INTEGER, type Order, type PageSource, type SortKey, TIMESTAMP, time } from "./pages.ts";

export interface MilestoneRow {
  id: number;
  number: number;
  document: string;
  updatedAt: Date | null;
}

export interface MilestoneList {
  state: "open" | "closed" | "all";
  sort: "due_on" | "completeness";
  direction: "asc" | "desc";
  limit: number;
  offset: number;
}

/** Sorted by due date, milestones without one come last; the other direction is the exact mirror image. */
const MILESTONE_SORT_KEYS = {
  due_on: sql`coalesce(m.due_on, 'infinity')`,
  completeness: sql`coalesce(m.closed_issues::float8 / nullif(m.open_issues + m.closed_issues, 0), 0)`,
};

/** A page of the repository's milestones, and how many match in all. */
export async function findMilestones(
  db: Database,
  repositoryId: number,
  { state, sort, direction, limit, offset }: MilestoneList,
): Promise<{ rows: MilestoneRow[]; total: number }> {
  const matching = sql`from milestones m
    where ${sql.and([sql`m.repository_id = ${repositoryId}`, sql`m.deleted_at is null`, MILESTONES_IN_STATE[state]])}`;
  const way = DIRECTIONS[direction];
  const rows = await db.prepared<MilestoneRow & { total: number }>(sql`
    select q.total, p.* from (select count(*) as total ${matching}) q left join lateral
      (select ${MILESTONE_COLUMNS}, ${MILESTONE_SORT_KEYS[sort]} as key ${matching}
       order by ${MILESTONE_SORT_KEYS[sort]} ${way}, m.number ${way} limit ${limit} offset ${offset}) p on true
      order by p.key ${way}, p.number ${way}`);
  return { rows: rows.filter((row) => row.id !== null), total: rows[0]?.total ?? 0 };
}

export async function findMilestone(db: Database, repositoryId: number, number: number): Promise<MilestoneRow | null> {
  const [milestone] = await db.prepared<MilestoneRow>(sql`
    select ${MILESTONE_COLUMNS} from milestones m
      where m.repository_id = ${repositoryId} and m.deleted_at is null and m.number = ${number}`);
  return milestone ?? null;
}

const MILESTONE_COLUMNS = sql`m.id, m.number, m.document::text as document, greatest(m.updated_at, m.changed_at) as "updatedAt"`;
const MILESTONES_IN_STATE = { all: sql`true`, open: sql`m.state = 'open'`, closed: sql`m.state = 'closed'` };

const BY_NUMBER: SortKey = { key: sql`m.number`, keyType: INTEGER };
const MILESTONE_KEYS: Readonly<Record<string, SortKey>> = {
  DUE_DATE: { key: sql`coalesce(m.due_on, 'infinity')`, keyType: TIMESTAMP },
  CREATED_AT: time(sql`m.created_at`),
  UPDATED_AT: time(sql`m.updated_at`),
  NUMBER: BY_NUMBER,
};

export function milestoneSource({
  orderBy,
  query,
  states,
}: {
  orderBy?: Order | null;
  query?: string | null;
  states?: string[] | null;
}): PageSource {
  return {
    from: sql`milestones m`,
    isFiltered: query != null,
    repositoryId: sql`m.repository_id`,
    document: sql`m.document`,
    conditions: [
      sql`m.repository_id = x.r and m.deleted_at is null`,
      ...(states && states.length > 0
        ? [sql`m.state = any(${states.map((state) => state.toLowerCase())}::text[])`]
        : []),
      ...contains([sql`m.title`], query),
    ],
    ...(MILESTONE_KEYS[orderBy?.field ?? ""] ?? BY_NUMBER),
    rowId: sql`m.number`,
    direction: direction(orderBy),
  };
}

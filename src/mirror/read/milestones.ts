import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";

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

/** Those without a due date come last when it is the date that counts, in either direction's mirror image. */
const SORT_KEYS = {
  due_on: "coalesce(m.due_on, 'infinity')",
  completeness: "coalesce(m.closed_issues::float8 / nullif(m.open_issues + m.closed_issues, 0), 0)",
};

/** A page of the repository's milestones, and how many match in all. */
export async function findMilestones(
  db: Database,
  repositoryId: number,
  { state, sort, direction, limit, offset }: MilestoneList,
): Promise<{ rows: MilestoneRow[]; total: number }> {
  const statement = new Statement();
  statement.where(`m.repository_id = ${statement.value(repositoryId)}`).where("m.deleted_at is null");
  if (state !== "all") statement.where(`m.state = '${state}'`);
  const rows = await statement.rows<RawMilestone & { total: string }>(
    db,
    `select q.total, p.* from (select count(*) as total from milestones m where ${statement.conditions}) q left join lateral
      (select ${COLUMNS}, ${SORT_KEYS[sort]} as key from milestones m where ${statement.conditions}
       order by ${SORT_KEYS[sort]} ${direction}, m.number ${direction} limit ${statement.value(limit)} offset ${statement.value(offset)}) p on true
      order by p.key ${direction}, p.number ${direction}`,
  );
  return { rows: rows.filter((row) => row.id !== null).map(toMilestone), total: Number(rows[0]?.total ?? 0) };
}

export async function findMilestone(db: Database, repositoryId: number, number: number): Promise<MilestoneRow | null> {
  const statement = new Statement();
  statement.where(`m.repository_id = ${statement.value(repositoryId)}`).where("m.deleted_at is null");
  statement.where(`m.number = ${statement.value(number)}`);
  const [row] = await statement.rows<RawMilestone>(
    db,
    `select ${COLUMNS} from milestones m where ${statement.conditions}`,
  );
  return row ? toMilestone(row) : null;
}

const COLUMNS = "m.id, m.number, m.document::text as document, m.updated_at";

interface RawMilestone {
  id: string;
  number: number;
  document: string;
  updated_at: Date | null;
}

function toMilestone({ id, number, document, updated_at }: RawMilestone): MilestoneRow {
  return { id: Number(id), number, document, updatedAt: updated_at };
}

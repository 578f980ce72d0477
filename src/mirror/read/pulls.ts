import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";

export interface PullRow {
  number: number;
  document: string;
  detail: string | null;
  body: string | null;
  updatedAt: Date;
}

export interface PullFilter {
  state: "open" | "closed" | "all";
  /** `user:branch`, in any case of the letters. */
  head?: string | undefined;
  base?: string | undefined;
}

export type PullSort = "created" | "updated" | "popularity" | "long-running";

const SHOWN = "p.id is not null and p.deleted_at is null";
const MONTH = "interval '1 month'";

/** A page of the repository's pull requests, and how many match in all. `now` decides what is long-running. */
export async function findPulls(
  db: Database,
  repositoryId: number,
  filter: PullFilter,
  page: { sort: PullSort; direction: "asc" | "desc"; limit: number; offset: number; now: Date },
): Promise<{ rows: PullRow[]; total: number }> {
  const count = matching(repositoryId, filter, page);
  const [counted] = await count.rows<{ total: string }>(
    db,
    `select count(*) as total from pull_requests p where ${count.conditions}`,
  );
  const total = Number(counted?.total ?? 0);
  if (total <= page.offset) return { rows: [], total };

  const statement = matching(repositoryId, filter, page);
  const byComments = page.sort === "popularity";
  const key = byComments
    ? "coalesce(i.comments, p.comments, 0)"
    : page.sort === "updated"
      ? "p.updated_at"
      : "p.created_at";
  const rows = await statement.rows<RawPull>(
    db,
    // Documents are read of what is on the page alone, and not of all before it.
    `select p.number, p.document::text as document, p.body, p.updated_at from (
        select p.number, p.document, p.body, p.updated_at, ${key} as key from pull_requests p
          ${byComments ? "left join issues i on i.repository_id = p.repository_id and i.number = p.number" : ""}
          where ${statement.conditions} order by key ${page.direction}, p.number ${page.direction}
          limit ${statement.value(page.limit)} offset ${statement.value(page.offset)}) p
      order by p.key ${page.direction}, p.number ${page.direction}`,
  );
  return { rows: rows.map(toPull), total };
}

function matching(
  repositoryId: number,
  { state, head, base }: PullFilter,
  { sort, now }: { sort: PullSort; now: Date },
): Statement {
  const statement = new Statement();
  statement.where(`p.repository_id = ${statement.value(repositoryId)}`).where(SHOWN);
  if (state !== "all") statement.where(`p.state = '${state}'`);
  if (base !== undefined) statement.where(`p.base_ref = ${statement.value(base)}`);
  if (head !== undefined) statement.where(`lower(p.head_label) = ${statement.value(head.toLowerCase())}`);
  if (sort === "long-running") {
    // GitHub docs: "filter by pull requests that were created more than a month ago and have had activity within the past month".
    const moment = statement.value(now);
    statement.where(
      `p.created_at < ${moment}::timestamptz - ${MONTH} and p.updated_at > ${moment}::timestamptz - ${MONTH}`,
    );
  }
  return statement;
}

/** Null: there is none, or it is deleted, or not whole yet. */
export async function findPull(db: Database, repositoryId: number, number: number): Promise<PullRow | null> {
  const statement = new Statement();
  statement
    .where(`p.repository_id = ${statement.value(repositoryId)}`)
    .where(`p.number = ${statement.value(number)}`)
    .where(SHOWN);
  const [row] = await statement.rows<RawPull>(
    db,
    `select p.number, p.document::text as document, p.detail::text as detail, p.body, p.updated_at from pull_requests p where ${statement.conditions}`,
  );
  return row ? toPull(row) : null;
}

interface RawPull {
  number: number;
  document: string;
  detail?: string | null;
  body: string | null;
  updated_at: Date;
}

function toPull({ number, document, detail = null, body, updated_at }: RawPull): PullRow {
  return { number, document, detail, body, updatedAt: updated_at };
}

import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, type SQL, sql } from "../../../db/sql.ts";
import { findRowsOfEach } from "./each.ts";
import { type Above, anyLabel, under } from "./issues.ts";
import { direction, INTEGER, type Order, type PageSource, type SortKey, TIMESTAMP } from "./pages.ts";
import { type AccessScope, visible } from "./repositories.ts";

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

export type PullSort = "created" | "updated" | "popularity";

const SHOWN_PULLS = sql`p.id is not null and p.deleted_at is null`;
const PULLS_IN_STATE = { all: sql`true`, open: sql`p.state = 'open'`, closed: sql`p.state = 'closed'` };

/** A page of the repository's pull requests, and how many match in all. */
export async function findPulls(
  db: Database,
  repositoryId: number,
  filter: PullFilter,
  page: { sort: PullSort; direction: "asc" | "desc"; limit: number; offset: number },
): Promise<{ rows: PullRow[]; total: number }> {
  const conditions = matching(repositoryId, filter);
  const [counted] = await db.prepared<{ total: number }>(sql`
    select count(*) as total from pull_requests p where ${conditions}`);
  const total = counted?.total ?? 0;
  if (total <= page.offset) return { rows: [], total };

  const byComments = page.sort === "popularity";
  const key = byComments
    ? sql`coalesce(i.comments, p.comments, 0)`
    : page.sort === "updated"
      ? sql`p.updated_at`
      : sql`p.created_at`;
  const way = DIRECTIONS[page.direction];
  // Documents are read only for rows on the page, not for all rows before it.
  const rows = await db.prepared<PullRow>(sql`
    select p.number, p.document::text as document, null as detail, p.body, greatest(p.updated_at, p.changed_at) as "updatedAt" from (
        select p.number, p.document, p.body, p.updated_at, p.changed_at, ${key} as key from pull_requests p
          ${byComments ? sql`left join issues i on i.repository_id = p.repository_id and i.number = p.number` : sql``}
          where ${conditions} order by key ${way}, p.number ${way} limit ${page.limit} offset ${page.offset}) p
      order by p.key ${way}, p.number ${way}`);
  return { rows, total };
}

/**
 * Whether the caller is shown the repositories that these pull requests come from. Of a private repository's pull
 * request that is not mirrored nobody can say where it comes from.
 * @param words what may be the beginning of a commit's hash. Until it is merged, a pull request's last commit belongs
 * to its head alone
 */
export async function areHeadsSeen(
  db: Database,
  repositoryId: number,
  { numbers, words }: { numbers: readonly number[]; words: readonly string[] },
  access: AccessScope,
): Promise<boolean> {
  if (access.metadata === "all") return true;
  const isSeen = sql`(p.head_repository_id = r.id or ${visible(sql`h`, access, "metadata")}
    or p.head_repository_id is null and not r.private)`;
  const isNamed = sql`p.number = any(${numbers}::integer[])`;
  const isSha = sql`p.merged is not true and exists (select from unnest(${words}::text[]) w
    where starts_with(p.head_sha, w) or starts_with(p.document ->> 'merge_commit_sha', w))`;
  const unseen = await db.count(sql`
    select from repositories r join pull_requests p on p.repository_id = r.id and ${SHOWN_PULLS}
        left join repositories h on h.id = p.head_repository_id
      where r.id = ${repositoryId} and ${isSeen} is not true and (${isNamed} or ${isSha})
    union all select from repositories r, unnest(${numbers}::integer[]) n
      where r.id = ${repositoryId} and r.private and not exists (select from pull_requests p
        where p.repository_id = r.id and p.number = n and ${SHOWN_PULLS})`);
  return unseen === 0;
}

function matching(repositoryId: number, { state, head, base }: PullFilter): SQL {
  const conditions = [sql`p.repository_id = ${repositoryId}`, SHOWN_PULLS, PULLS_IN_STATE[state]];
  if (base !== undefined) conditions.push(sql`p.base_ref = ${base}`);
  if (head !== undefined) conditions.push(sql`folded(p.head_label) = folded(${head}::text)`);
  return sql.and(conditions);
}

/** Null: there is none, or it is deleted, or not whole yet. */
export async function findPull(db: Database, repositoryId: number, number: number): Promise<PullRow | null> {
  const [pull] = await db.prepared<PullRow>(sql`
    select p.number, p.document::text as document, p.detail::text as detail, p.body, greatest(p.updated_at, p.changed_at) as "updatedAt"
      from pull_requests p
      where p.repository_id = ${repositoryId} and p.number = ${number} and ${SHOWN_PULLS}`);
  return pull ?? null;
}

/** Whether the number names a pull request that is mirrored. */
export async function isMirroredIssue(db: Database, repositoryId: number, number: number): Promise<boolean> {
  const rows = await db.prepared(sql`
    select from issues i
      where i.repository_id = ${repositoryId} and i.number = ${number} and i.id is not null and not i.is_pull_request`);
  return rows.length > 0;
}

export async function isMirroredPull(db: Database, repositoryId: number, number: number): Promise<boolean> {
  return (await findPullKeys(db, [{ repositoryId, number }])).size > 0;
}

/** Those of the numbers that name mirrored pull requests, as `repositoryId/number`. */
export async function findPullKeys(
  db: Database,
  wanted: readonly { repositoryId: number; number: number }[],
): Promise<Set<string>> {
  if (wanted.length === 0) return new Set();
  const repositoryIds = wanted.map(({ repositoryId }) => repositoryId);
  const numbers = wanted.map(({ number }) => number);
  const rows = await db.prepared<{ key: string }>(sql`
    select p.repository_id || '/' || p.number as key
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(numbers, "integer")}) x(r, n)
      join pull_requests p on p.repository_id = x.r and p.number = x.n`);
  return new Set(rows.map(({ key }) => key));
}

/** Of a branch with more pull requests than these, none is found. */
const MOST_OF_A_BRANCH = 20;

/** The numbers of the pull requests that would merge each branch within its repository, oldest first; null: too many. */
export async function findPullsOfBranches(
  db: Database,
  branches: readonly { repositoryId: number; name: string }[],
): Promise<(number[] | null)[]> {
  const found = await findRowsOfEach<{ number: number }>(
    db,
    branches,
    ["repositoryId", "name"],
    (x) => sql`
    select b.at, b.number from (
      select x.at, p.number, row_number() over (partition by x.at order by p.created_at, p.number) as place
        from ${x} join pull_requests p on p.repository_id = x.repository_id and p.head_ref = x.name
          and p.head_repository_id = x.repository_id
        where ${SHOWN_PULLS}) b
      where b.place <= ${MOST_OF_A_BRANCH + 1} order by b.at, b.place`,
  );
  return found.map((rows) => (rows.length > MOST_OF_A_BRANCH ? null : rows.map(({ number }) => number)));
}

export interface PullsArguments {
  orderBy?: Order | null;
  states?: ("OPEN" | "CLOSED" | "MERGED")[] | null;
  labels?: string[] | null;
  headRefName?: string | null;
  baseRefName?: string | null;
}

const PULL_STATES = {
  OPEN: sql`p.state = 'open'`,
  CLOSED: sql`(p.state = 'closed' and p.merged_at is null)`,
  MERGED: sql`p.merged_at is not null`,
};

export function pullSource(
  { orderBy, states, labels, headRefName, baseRefName }: PullsArguments,
  above: Above = "repository",
): PageSource {
  return {
    from: sql`pull_requests p`,
    isFiltered: headRefName != null || baseRefName != null || (labels ?? []).length > 0,
    repositoryId: sql`p.repository_id`,
    document: sql`p.document`,
    detail: sql`p.detail`,
    body: sql`p.body`,
    conditions: [
      sql`${under(sql`p`, above)} and p.id is not null and p.deleted_at is null`,
      ...(states && states.length > 0 ? [sql.or(states.map((state) => PULL_STATES[state]))] : []),
      ...(headRefName == null ? [] : [sql`p.head_ref = ${headRefName}`]),
      ...(baseRefName == null ? [] : [sql`p.base_ref = ${baseRefName}`]),
      ...anyLabel(sql`p`, labels),
    ],
    ...pullKey(orderBy),
    rowId: sql`p.number`,
    direction: direction(orderBy),
  };
}

function pullKey(orderBy: Order | null | undefined): SortKey {
  switch (orderBy?.field) {
    case "UPDATED_AT":
      return { key: sql`p.updated_at`, keyType: TIMESTAMP };
    case "COMMENTS":
      // Only the read of a single pull request shows the count.
      return { key: sql`coalesce(p.comments, 0)`, keyType: INTEGER };
    default:
      return { key: sql`p.created_at`, keyType: TIMESTAMP };
  }
}

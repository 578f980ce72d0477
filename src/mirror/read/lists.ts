import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { HAS_LISTS, LIST_VERSION, type ListKey, type ListName, THREADS_HAVE_ALL, tableOf } from "../store/lists.ts";
import { findDocuments, findEach } from "./each.ts";
import type { PageSource } from "./pages.ts";
import { type AccessScope, visible } from "./repositories.ts";

/** How many rows each of these lists has; null: the list is incomplete or out of date here. */
export async function countHeldLists(
  db: Database,
  list: ListName,
  keys: readonly Pick<ListKey, "repositoryId" | "number">[],
): Promise<(number | null)[]> {
  const found = await findEach<{ total: number }>(
    db,
    keys,
    ["repositoryId", "number"],
    (x) => sql`
    select x.at, (select count(*) from ${tableOf(list)} t
          where t.repository_id = l.repository_id and t.number = l.number) as total
      from ${x}
      join mirrored_lists l on l.repository_id = x.repository_id and l.list = ${list} and l.number = x.number and l.read_at is not null
      join pull_requests p on p.repository_id = x.repository_id and p.number = x.number and ${HAS_LISTS} and l.version = ${LIST_VERSION}
        and ${list === "threads" ? THREADS_HAVE_ALL : sql`true`}`,
  );
  return found.map((row) => row?.total ?? null);
}

/** A part of a list, in upstream's order. */
export async function findListed(
  db: Database,
  { repositoryId, list, number }: ListKey,
  { offset, limit }: { offset: number; limit: number },
): Promise<{ repositoryId: number; document: string }[]> {
  const rows = await db.prepared<{ document: string }>(sql`
    select t.document::text as document from ${tableOf(list)} t
      where t.repository_id = ${repositoryId} and t.number = ${number}
        and t.position >= ${offset} and t.position < ${offset + limit}
      order by t.position`);
  return rows.map(({ document }) => ({ repositoryId, document }));
}

/** The same for connections: each list by its pull request. */
export function listedSource(list: ListName): PageSource {
  return {
    from: sql`${tableOf(list)} t`,
    repositoryId: sql`t.repository_id`,
    document: sql`t.document`,
    conditions: [sql`t.repository_id = x.r`, sql`t.number = x.n`],
    key: sql`t.position`,
    keyType: sql`integer`,
    rowId: sql`t.position`,
    direction: "asc",
  };
}

/** A comment `c` stands in a thread `t`. */
const STANDS_IN_THREAD = sql`c.repository_id = t.repository_id and c.pull_number = t.number and c.deleted_at is null
  and coalesce(c.in_reply_to_id, c.id) = t.root_id`;

/** The threads of a pull request. A thread whose comments were all deleted is left out. */
export const threadSource: PageSource = {
  ...listedSource("threads"),
  conditions: [
    ...listedSource("threads").conditions,
    sql`exists (select from pull_request_review_comments c where ${STANDS_IN_THREAD})`,
  ],
};

/** The comments of a thread. Its first comment names it. */
export const threadComments: PageSource = {
  from: sql`pull_request_threads t join pull_request_review_comments c on ${STANDS_IN_THREAD}`,
  repositoryId: sql`c.repository_id`,
  document: sql`c.document`,
  body: sql`c.body`,
  conditions: [sql`t.repository_id = x.r`, sql`t.root_id = x.n`],
  key: sql`c.id`,
  keyType: sql`bigint`,
  rowId: sql`c.id`,
  direction: "asc",
};

/** The pull requests of these threads, by upstream's global ids. */
export async function findThreadPlaces(
  db: Database,
  nodeIds: readonly string[],
  access: AccessScope,
): Promise<{ repositoryId: number; number: number }[]> {
  return await db.prepared<{ repositoryId: number; number: number }>(sql`
    select distinct t.repository_id as "repositoryId", t.number from pull_request_threads t
      join repositories r on r.id = t.repository_id
      where t.node_id = any(${sql.array(nodeIds, "text")}::text[]) and ${visible(sql`r`, access, "pulls")}`);
}

/** These commits, as the list of some pull request shows them. */
export async function findCommits(
  db: Database,
  commits: readonly { repositoryId: number; sha: string }[],
): Promise<({ repositoryId: number; document: string } | null)[]> {
  return await findDocuments(
    db,
    commits,
    ["repositoryId", "sha"],
    (x) => sql`
    select distinct on (x.at) x.at, t.document::text as document
      from ${x} join pull_request_commits t using (repository_id, sha) order by x.at, t.number desc`,
  );
}

import type { Database, Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { REPLICA_LAG_MS } from "../store/merge-rule.ts";
import { findDocuments } from "./each.ts";
import type { CountedBounds } from "./numbered-pages.ts";
import type { PageSource } from "./pages.ts";
import { BY_CREATION, findResourcePage, resourceSource } from "./resources.ts";

/** The releases of a repository whose list is complete here. */
export interface HeldReleases {
  /** Whether the list includes drafts: upstream shows them only to some credentials. */
  showsDrafts: boolean;
  hasDrafts: boolean;
  /** The release that upstream calls the latest; null: none. Undefined: upstream has to say. */
  latestId: number | null | undefined;
}

/** When a row counts as seen by every replica of upstream: for a webhook's row that is later by the lag. */
const SEEN_AT = sql`greatest(t.seen_at + case when t.seen_by_read then interval '0' else
  ${`${REPLICA_LAG_MS} milliseconds`}::interval end, t.deleted_at)`;

/** Whether no release of the row `l` of `release_lists` has changed since upstream said which is the latest. */
export const IS_LATEST_KNOWN = sql`(l.latest_read_at is not null and not exists (select from releases t
  where t.repository_id = l.repository_id and ${SEEN_AT} > l.latest_read_at))`;

/** Finds the releases of each repository; null: its list is incomplete here. */
export async function findHeldReleases(
  db: Queries,
  repositoryIds: readonly number[],
): Promise<(HeldReleases | null)[]> {
  const rows = await db.prepared<
    Omit<HeldReleases, "latestId"> & { id: number; latestId: number | null; isKnown: boolean }
  >(
    sql`select l.repository_id as id, l.shows_drafts as "showsDrafts", l.latest_id as "latestId",
        ${IS_LATEST_KNOWN} as "isKnown",
        exists (select from releases t where t.repository_id = l.repository_id and t.draft and t.deleted_at is null)
          as "hasDrafts"
      from release_lists l
      where l.repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[]) and l.read_at is not null`,
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  return repositoryIds.map((id) => {
    const row = found.get(id);
    if (!row) return null;
    const { showsDrafts, hasDrafts, latestId, isKnown } = row;
    return { showsDrafts, hasDrafts, latestId: isKnown ? latestId : undefined };
  });
}

/** A page of releases, the newest first, and how many there are. */
export async function findReleases(
  db: Database,
  repositoryId: number,
  { withDrafts, ...page }: CountedBounds & { withDrafts: boolean },
): Promise<{ rows: StoredDocument[]; total: number }> {
  const among = [sql`(${withDrafts}::boolean or not t.draft)`];
  return await findResourcePage(db, "release", repositoryId, { among, order: "newest", ...page });
}

export type FoundRelease = StoredDocument & { isDraft: boolean };
export type ReleaseKey = { repositoryId: number } & ({ id: number } | { tag: string });

/** These releases; null: there is no such one. A tag finds only a published release. */
export async function findReleasesBy(db: Queries, keys: readonly ReleaseKey[]): Promise<(FoundRelease | null)[]> {
  return await findDocuments<{ isDraft: boolean }>(
    db,
    keys,
    ["repositoryId", "id", "tag"],
    (x) => sql`
    select x.at, t.document::text as document, t.draft as "isDraft"
      from ${x} cross join lateral (
        (select y.* from releases y where y.repository_id = x.repository_id and y.id = x.id and y.deleted_at is null)
        union all
        (select y.* from releases y where y.repository_id = x.repository_id and y.tag_name = x.tag and not y.draft
          and y.deleted_at is null order by y.id desc limit 1)) t`,
  );
}

/** One of them. */
export async function findRelease(db: Queries, key: ReleaseKey): Promise<FoundRelease | null> {
  const [found = null] = await findReleasesBy(db, [key]);
  return found;
}

/** The release that has an asset, by its id. */
export async function findReleaseOfAsset(db: Queries, repositoryId: number, assetId: number): Promise<number | null> {
  const [row] = await db.prepared<{ id: number }>(sql`
    select t.id from releases t where t.repository_id = ${repositoryId} and t.deleted_at is null
      and position(${`/releases/assets/${assetId}"`} in t.document::text) > 0 limit 1`);
  return row?.id ?? null;
}

/** Releases for GraphQL's lists. */
export function releaseSource({
  withDrafts,
  direction,
}: {
  withDrafts: boolean;
  direction: "asc" | "desc";
}): PageSource {
  const source = resourceSource("release", { ...BY_CREATION, direction });
  // The table's text tells whether drafts are included. The length of a list is kept by that text, for all callers
  // with the same rights.
  return withDrafts ? source : { ...source, from: sql`(select * from releases where not draft) t` };
}

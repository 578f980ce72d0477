import type { Database } from "../../../db/database.ts";
import { GatheredRead } from "../../../db/gathered.ts";
import type { SyncState } from "../../../db/schema/sync.ts";
import { sql } from "../../../db/sql.ts";

/** What every read and write about a repository begins with. */
export interface MirroredRepository {
  id: number;
  nodeId: string | null;
  fullName: string;
  htmlUrl: string | null;
  state: SyncState;
}

interface Row {
  id: string;
  node_id: string | null;
  full_name: string;
  html_url: string | null;
  state: SyncState;
}

/** A repository that is mirrored, or was; null for any other. */
export function findMirroredRepository(db: Database, id: number): Promise<MirroredRepository | null> {
  return REPOSITORIES.find(db, id);
}

/** Those who ask at the same time are answered by one statement. */
const REPOSITORIES = new GatheredRead(async (db, ids: number[]): Promise<(MirroredRepository | null)[]> => {
  const rows = await db.prepared<Row>(sql`
    select r.id, r.node_id, r.full_name, r.html_url, s.state from repositories r
      join repository_syncs s on s.repository_id = r.id
      where r.id = any(${sql.array([...new Set(ids)], "bigint")}::bigint[])`);
  const found = new Map(
    rows.map((row) => [
      Number(row.id),
      { id: Number(row.id), nodeId: row.node_id, fullName: row.full_name, htmlUrl: row.html_url, state: row.state },
    ]),
  );
  return ids.map((id) => found.get(id) ?? null);
});

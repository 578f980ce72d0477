import type { Database } from "../../db/connection.ts";

/** What every read and write about a repository begins with. */
export interface MirroredRepository {
  id: number;
  nodeId: string | null;
  fullName: string;
  htmlUrl: string | null;
  state: "backfilling" | "live" | "paused" | "gone";
}

interface Row {
  id: string;
  node_id: string | null;
  full_name: string;
  html_url: string | null;
  state: MirroredRepository["state"];
}

/** A repository that is mirrored, or was; null for any other. */
export async function findMirroredRepository(db: Database, id: number): Promise<MirroredRepository | null> {
  const { rows } = await db.$client.query<Row>(
    "select r.id, r.node_id, r.full_name, r.html_url, s.state from repositories r join repository_syncs s on s.repository_id = r.id where r.id = $1",
    [id],
  );
  const row = rows[0];
  return row
    ? { id: Number(row.id), nodeId: row.node_id, fullName: row.full_name, htmlUrl: row.html_url, state: row.state }
    : null;
}

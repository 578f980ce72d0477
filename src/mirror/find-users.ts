import type { Database } from "../../db/connection.ts";
import { Statement } from "./statement.ts";

export interface UserRow {
  id: number;
  document: string;
  updatedAt: Date | null;
}

export async function findUser(db: Database, id: number): Promise<UserRow | null> {
  const statement = new Statement();
  const [row] = await statement.rows<{ id: string; document: string; updated_at: Date | null }>(
    db,
    `select u.id, u.document::text as document, u.updated_at from users u where u.id = ${statement.value(id)} and u.deleted_at is null`,
  );
  return row ? { id: Number(row.id), document: row.document, updatedAt: row.updated_at } : null;
}

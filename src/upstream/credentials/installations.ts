import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";

/** One account on which our GitHub App is installed, as upstream last showed it. */
export interface Installation {
  id: number;
  /** The login of the user or organization. */
  account: string;
  accountType: string;
  repositorySelection: string;
  /** What the account has granted: name to read, write or admin. */
  permissions: Record<string, string>;
  events: string[];
  suspendedAt: Date | null;
}

/** Names an installation among the credentials. Its token changes every hour, its name never. */
export function installationCredential(id: number): string {
  return `installation-${id}`;
}

/** The installation's id; null: the credential is no installation. Pure. */
export function installationOf(credential: string): number | null {
  const [, id] = /^installation-(\d+)$/.exec(credential) ?? [];
  return id === undefined ? null : Number(id);
}

export async function loadInstallations(db: Queries): Promise<Installation[]> {
  return db.query<Installation>(sql`
    select id::float8 as id, account, account_type as "accountType", repository_selection as "repositorySelection",
        permissions, events, suspended_at as "suspendedAt" from installations order by id`);
}

/** The installation that covers each repository, if there is one; 0 if one covered it and no longer does. */
export async function findInstallations(db: Queries, repositoryIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await db.query<{ repository_id: string; installation_id: string }>(sql`
    select repository_id, case when page = 0 then 0 else installation_id end as installation_id
      from installation_repositories where repository_id = any(${repositoryIds})`);
  return new Map(rows.map((row) => [Number(row.repository_id), Number(row.installation_id)]));
}

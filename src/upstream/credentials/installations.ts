import type { Queries } from "../../../db/database.ts";
import { among } from "../../../db/sql.ts";
import { installationRepositories, installations } from "../../schema.ts";

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
  return await db
    .select({
      id: installations.id,
      account: installations.account,
      accountType: installations.accountType,
      repositorySelection: installations.repositorySelection,
      permissions: installations.permissions,
      events: installations.events,
      suspendedAt: installations.suspendedAt,
    })
    .from(installations)
    .orderBy(installations.id);
}

/** The installation that covers each repository, if there is one; 0 if one covered it and no longer does. */
export async function findInstallations(db: Queries, repositoryIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await db
    .select()
    .from(installationRepositories)
    .where(among(installationRepositories.repositoryId, repositoryIds));
  return new Map(rows.map(({ repositoryId, installationId, page }) => [repositoryId, page === 0 ? 0 : installationId]));
}

import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Installed } from "../events/installed.ts";
import { tryAgain } from "../problems/problems.ts";

/**
 * Notes a webhook about an installation. The installation is then read from upstream, so the order of events does not
 * matter.
 */
export async function noteInstallation(tx: Transaction, installed: Installed, at: Date): Promise<void> {
  const { id, account, type, selection, permissions, events } = installed;
  await tx.query(sql`insert into installations (id, account, account_type, repository_selection, permissions, events, told_at)
    values (${id}, ${account}, ${type}, ${selection}, ${permissions}, ${events}, ${at})
    on conflict (id) do update set listed_at = null, told_at = greatest(installations.told_at, excluded.told_at)`);
  await tryAgain(tx, { task: "installation", keys: ["app", String(id)] });
}

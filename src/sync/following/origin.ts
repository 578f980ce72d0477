import type { PgTable } from "drizzle-orm/pg-core";
import type { Queries } from "../../../db/database.ts";
import { PEOPLE } from "../../../db/revisions.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import * as schema from "../../schema.ts";

/** The origin of the demonstration's databases. Its world is another one at each start, so no address names it. */
export const SIMULATOR = "simulator";

/** The database belongs to another upstream. The message says which, and what to set. */
export class OriginMismatchError extends Error {
  override name = "OriginMismatchError";
}

/** The tables that hold nothing of upstream's: our own tokens, the schema's version, the history and the origin. */
const OWN: readonly PgTable[] = [schema.apiTokens, schema.eras, schema.origin, schema.schemaMigrations];
/** All others: upstream's content, or what was selected of it. */
const OF_UPSTREAM: readonly PgTable[] = Object.values(schema).filter((table) => !OWN.includes(table));

// Long enough for a process that was left running, since it holds each lock only for one statement.
const LOCK_TIMEOUT = "10s";

/**
 * Notes that this database mirrors `upstream`: a REST address or `SIMULATOR`.
 *
 * - claimed: the database had no upstream, or had one that never answered, such as a mistyped address. The second case
 *   needs a database that is ours alone (`isOurs`), such as an embedded one: another process may be about to fill a
 *   shared database.
 * - continued: it mirrors the same upstream already.
 * - emptied: it held a simulated world, which is gone; the mirror begins anew. The queues should be emptied likewise.
 *
 * Call it before anything else works on the database.
 * @throws OriginMismatchError when the database belongs to another upstream; nothing was changed
 */
export async function claimOrigin(
  { db, clock }: Pick<Context, "db" | "clock">,
  upstream: string,
  { isOurs = false }: { isOurs?: boolean } = {},
): Promise<"claimed" | "continued" | "emptied"> {
  return await db.transaction(async (tx) => {
    await tx.query(sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`);
    // If two processes start at once, the second waits here, and then finds the origin that the first stored.
    await tx.query(sql`lock table origin in exclusive mode`);
    const known = await findOrigin(tx);
    if (known === null) {
      if (upstream === SIMULATOR && (await holdsAnything(tx)))
        throw new OriginMismatchError(originMismatch(null, upstream));
      await tx.insert(schema.origin).values({ upstream, claimedAt: clock.now() });
      return "claimed";
    }
    if (known === SIMULATOR) {
      const tables = upstream === SIMULATOR ? OF_UPSTREAM : [...OF_UPSTREAM, schema.apiTokens];
      await tx.query(sql`truncate ${sql.join(tables)}`);
      tx.touch([PEOPLE]);
      await tx.update(schema.origin).set({ upstream, claimedAt: clock.now() });
      return "emptied";
    }
    if (known === upstream) return "continued";
    if (!isOurs || (await holdsAnything(tx))) throw new OriginMismatchError(originMismatch(known, upstream));
    await tx.update(schema.origin).set({ upstream, claimedAt: clock.now() });
    return "claimed";
  });
}

/** What the database mirrors; null when no start has said so. */
export async function findOrigin(queries: Queries): Promise<string | null> {
  const [row] = await queries.select({ upstream: schema.origin.upstream }).from(schema.origin);
  return row?.upstream ?? null;
}

/** Whether upstream has ever shown anything: the token's user or a repository comes first. */
async function holdsAnything(queries: Queries): Promise<boolean> {
  const [row] = await queries.query<{ holds: boolean }>(
    sql`select exists (select from repositories) or exists (select from users) as holds`,
  );
  return row?.holds === true;
}

function originMismatch(known: string | null, upstream: string): string {
  const elsewhere = "or use another database (DATABASE_URL; TAIN_HOME where it is the embedded one)";
  if (upstream === SIMULATOR) {
    const holds = known === null ? "holds a mirror already" : `mirrors ${known}`;
    return `This database ${holds}, and the demonstration would replace it: set UPSTREAM_URL and UPSTREAM_TOKEN to go on with it, ${elsewhere}`;
  }
  return `This database mirrors ${known}, not ${upstream}: set UPSTREAM_URL to ${known}, ${elsewhere}`;
}

import { type SchemaFit, SchemaTooOldError, schemaFit } from "../../../db/schema-fit.ts";
import { sql } from "../../../db/sql.ts";
import { postgresTooOld, UnfitStoreError } from "../../../db/unfit.ts";
import type { Context } from "../../context.ts";
import { rootReasonOf } from "../../failure.ts";
import { WRITE_REFUSALS } from "../../health/readiness.ts";
import { probeWrite, type WriteRefusal } from "../../inbox/write-probe.ts";
import { VERSION } from "../../version.ts";
import { clockFinding, type Finding, Findings, okFinding, problem, unfit } from "./finding.ts";

const POSTGRES_PATIENCE_MS = 5_000;

/** Facts about the Postgres server. */
export interface PostgresFacts {
  /** As in `server_version_num`: 180001 is 18.1. */
  versionNumber: number;
  version: string;
  isStandby: boolean;
  fsync: string;
  synchronousCommit: string;
  maxConnections: number;
  connections: number;
}

/** Whether Postgres is there and fit, its schema, its clock. Never throws: a failure is a finding. */
export async function examinePostgres({ db, clock }: Pick<Context, "db" | "clock">): Promise<Finding[]> {
  const limits = { timeoutMs: POSTGRES_PATIENCE_MS };
  try {
    // The first statement opens the connection, which must not count as a clock's difference.
    await db.query(sql`select`, limits);
    const askedAt = clock.now().getTime();
    const [facts] = await db.query<PostgresFacts & { now: Date }>(
      sql`
        select current_setting('server_version_num')::integer as "versionNumber",
          current_setting('server_version') as version, pg_is_in_recovery() as "isStandby",
          current_setting('fsync') as fsync, current_setting('synchronous_commit') as "synchronousCommit",
          current_setting('max_connections')::integer as "maxConnections",
          (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
          clock_timestamp() as now`,
      limits,
    );
    if (!facts) throw new Error("Postgres answered without a row");
    const aheadMs = facts.now.getTime() - (askedAt + clock.now().getTime()) / 2;
    const fit = await schemaFit(db, limits);
    const refused = facts.isStandby ? null : await probeWrite({ db });
    return [
      ...postgresFindings(facts),
      ...(refused ? [writeFinding(refused)] : []),
      schemaFinding(fit),
      clockFinding("Postgres", aheadMs),
    ];
  } catch (error) {
    const todo = "See that DATABASE_URL is right and the server runs";
    return [problem("postgres-away", `Postgres cannot be used: ${rootReasonOf(error)}`, todo)];
  }
}

/** Pure. */
export function postgresFindings(facts: PostgresFacts): Finding[] {
  const { version, versionNumber, isStandby, fsync, synchronousCommit, connections, maxConnections } = facts;
  const found = new Findings("postgres");
  const refusal = postgresTooOld(versionNumber);
  if (refusal) found.all.push(unfit("postgres-version", refusal));
  else found.ok(`Postgres ${version}`);
  if (isStandby)
    found.problem(
      "postgres-standby",
      "Postgres is a standby, and takes no writes",
      "Promote it, or point DATABASE_URL to the primary",
    );
  const unsafe = [fsync === "off" ? "fsync" : null, synchronousCommit === "off" ? "synchronous_commit" : null];
  for (const name of unsafe.filter((each) => each !== null))
    found.warning(
      "postgres-durability",
      `${name} is off: what was acknowledged to upstream may be lost when the machine fails`,
      `Set ${name} to on`,
    );
  if (connections > maxConnections * 0.9)
    found.warning(
      "postgres-connections",
      `${connections} of ${maxConnections} connections are in use`,
      "Raise max_connections, or lower DATABASE_CONNECTIONS; each process opens up to that many",
    );
  return found.all;
}

function writeFinding({ check, reason }: WriteRefusal): Finding {
  const todo =
    check === "postgres-full"
      ? "Free space on its disk, or give it more: nothing is copied or applied meanwhile"
      : "Set default_transaction_read_only to off, or point DATABASE_URL to the primary";
  return problem(check, `Postgres answers, but ${WRITE_REFUSALS[check]}: ${reason}`, todo);
}

function schemaFinding(fit: SchemaFit): Finding {
  if (fit instanceof UnfitStoreError)
    return unfit(fit instanceof SchemaTooOldError ? "schema-older" : "schema-newer", fit);
  switch (fit) {
    case "same":
      return okFinding("postgres", "The schema is this version's");
    case "newer":
      return okFinding("postgres", `The schema is a newer version's; Tain ${VERSION} may work beside it`);
    case "missing":
      return problem("schema-missing", "Migrations are missing", "Run `node db/migrate.ts`");
    default:
      return fit satisfies never;
  }
}

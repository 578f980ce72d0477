import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type AuditReport, type Drift, driftCount } from "./report.ts";

/** More of an audit's drift is told by its report alone. */
const SHOWN = 20;

/** The newest audit of a repository. */
export interface ListedAudit {
  /** `owner/name` */
  repository: string;
  startedAt: Date;
  /** Null: it is under way, or stopped where it goes on. */
  finishedAt: Date | null;
  repaired: boolean;
  resources: number;
  /** In how much the mirror was not equal to upstream. */
  found: number;
  /** The first of it. */
  drift: Drift[];
}

/** Those that found something first, then the newest. */
export async function listAudits({ db }: Pick<Context, "db">, limit: number): Promise<ListedAudit[]> {
  const rows = await db.query<{
    repository: string;
    startedAt: Date;
    finishedAt: Date | null;
    repair: boolean;
    report: AuditReport;
  }>(sql`
    select r.full_name as repository, a.started_at as "startedAt", a.finished_at as "finishedAt", a.repair, a.report
      from audits a join repositories r on r.id = a.repository_id join repository_syncs s on s.repository_id = a.repository_id
      where ${MIRRORED}
      order by a.report->>'counts' = '{}', a.started_at desc limit ${limit}`);
  return rows.map(({ report, repair, ...rest }) => ({
    ...rest,
    repaired: repair,
    resources: report.resources,
    found: driftCount(report),
    drift: report.drift.slice(0, SHOWN),
  }));
}

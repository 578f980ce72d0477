import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type AuditReport, type Drift, driftCount, reportOf } from "./report.ts";

/** How many differences are listed. The audit's report has all of them. */
const LISTED_DRIFT = 20;

/** The newest audit of a repository. */
export interface ListedAudit {
  /** `owner/name` */
  repository: string;
  startedAt: Date;
  /** Null: the audit is under way, or it stopped and can continue. */
  finishedAt: Date | null;
  repaired: boolean;
  resources: number;
  /** The parts that upstream did not show. */
  notCompared: AuditReport["notCompared"];
  /** How many differences the audit found. */
  found: number;
  /** The first differences. */
  drift: Drift[];
}

/** Audits that found something come first, then the newest. */
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
    notCompared: reportOf(report).notCompared,
    found: driftCount(report),
    drift: report.drift.slice(0, LISTED_DRIFT),
  }));
}

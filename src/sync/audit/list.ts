import { desc, eq } from "drizzle-orm";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { audits, repositories, repositorySyncs } from "../../schema.ts";
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
  const rows = await db
    .select({
      repository: repositories.fullName,
      startedAt: audits.startedAt,
      finishedAt: audits.finishedAt,
      repaired: audits.repair,
      report: sql<AuditReport>`${audits.report}`,
    })
    .from(audits)
    .innerJoin(repositories, eq(repositories.id, audits.repositoryId))
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, audits.repositoryId))
    .where(IS_MIRRORED)
    .orderBy(sql`${audits.report} ->> 'counts' = '{}'`, desc(audits.startedAt))
    .limit(limit);
  return rows.map(({ report, ...rest }) => ({
    ...rest,
    resources: report.resources,
    notCompared: reportOf(report).notCompared,
    found: driftCount(report),
    drift: report.drift.slice(0, LISTED_DRIFT),
  }));
}

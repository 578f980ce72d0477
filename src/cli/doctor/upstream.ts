import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { UpstreamRefusedError, UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import { reportToken, type TokenReport } from "../../upstream/credentials/token-report.ts";
import { counted } from "../output.ts";
import { examineAppCredentials } from "./app.ts";
import { clockFinding } from "./clock.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { tokenFindings } from "./token.ts";

/** The most repositories that each token is asked about: ten points a token. */
const ASKED_REPOSITORIES = 1_000;

/** Upstream with each of our credentials, and the repositories that they do not see. */
export async function examineUpstream(ctx: Context, hasMirror: boolean): Promise<Finding[]> {
  const mirrored = hasMirror ? await repositoriesToSee(ctx) : [];
  const asked = mirrored.slice(0, ASKED_REPOSITORIES);
  const reports: TokenReport[] = [];
  for (const token of ctx.config.upstreamTokens) {
    try {
      reports.push(await reportToken(ctx, token, asked));
    } catch (error) {
      if (!(error instanceof UpstreamUnavailableError || error instanceof UpstreamRefusedError)) throw error;
      const todo = "See that UPSTREAM_URL is right and reachable from here";
      return [problem("upstream", `${ctx.config.upstreamUrl} does not answer as it should: ${error.message}`, todo)];
    }
  }
  const now = ctx.clock.now().getTime();
  const findings: Finding[] = reports.length > 0 ? [ok("upstream", `${ctx.config.upstreamUrl} answers`)] : [];
  if (ctx.config.appId !== null) findings.push(...(await examineAppCredentials(ctx, hasMirror)));
  findings.push(...reports.flatMap((report) => tokenFindings(report, now)));
  const aheadMs = reports.find((report) => report.aheadMs !== null)?.aheadMs;
  if (aheadMs != null) findings.push(clockFinding("upstream", aheadMs, 1_000));
  if (asked.length > 0 && reports.some(({ unseen }) => unseen !== null && unseen.length === 0))
    findings.push(
      mirrored.length > asked.length
        ? warning(
            "repositories",
            `Only the first ${asked.length} of ${mirrored.length} repositories were asked for`,
            "`tain status` names those that are paused",
          )
        : ok(
            "repositories",
            `${counted(asked.length, "mirrored repository is", "mirrored repositories are")} seen by ${reports.length === 1 ? "the token" : "a token"}`,
          ),
    );
  return findings;
}

async function repositoriesToSee({ db }: Context): Promise<{ nodeId: string; fullName: string }[]> {
  const rows = await db.query<{ node_id: string; full_name: string }>(sql`
    select r.node_id, r.full_name from repositories r join repository_syncs s on s.repository_id = r.id
      where s.state <> 'gone' and r.node_id is not null order by lower(r.full_name)`);
  return rows.map(({ node_id: nodeId, full_name: fullName }) => ({ nodeId, fullName }));
}

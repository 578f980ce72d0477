import { and, eq, isNotNull } from "drizzle-orm";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { repositories, repositorySyncs } from "../../schema.ts";
import { reportToken, type TokenReport } from "../../upstream/client/token-report.ts";
import { UpstreamRefusedError, UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { counted } from "../terminal/output.ts";
import { examineAppCredentials } from "./app.ts";
import { clockFinding, type Finding, okFinding, upstreamAway, warning } from "./finding.ts";
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
      return [upstreamAway(`${ctx.config.upstreamUrl} does not answer as it should`, error, todo)];
    }
  }
  const now = ctx.clock.now().getTime();
  const findings: Finding[] = reports.length > 0 ? [okFinding("upstream", `${ctx.config.upstreamUrl} answers`)] : [];
  if (ctx.config.appId !== null) findings.push(...(await examineAppCredentials(ctx, hasMirror)));
  findings.push(...reports.flatMap((report) => tokenFindings(report, now)));
  const aheadMs = reports.find((report) => report.aheadMs !== null)?.aheadMs;
  if (aheadMs != null) findings.push(clockFinding("upstream", aheadMs, 1_000));
  if (asked.length > 0 && reports.some(({ unseen }) => unseen !== null && unseen.length === 0))
    findings.push(seenFinding(asked.length, mirrored.length, reports.length));
  return findings;
}

function seenFinding(asked: number, mirrored: number, tokens: number): Finding {
  const todo = "`tain status` names those that are paused";
  if (mirrored > asked)
    return warning("token-sight", `Only the first ${asked} of ${mirrored} repositories were asked for`, todo);
  const what = counted(asked, "mirrored repository is", "mirrored repositories are");
  return okFinding("repositories", `${what} seen by ${tokens === 1 ? "the token" : "a token"}`);
}

async function repositoriesToSee({ db }: Context): Promise<{ nodeId: string; fullName: string }[]> {
  return await db
    .select({ nodeId: sql<string>`${repositories.nodeId}`, fullName: repositories.fullName })
    .from(repositories)
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositories.id))
    .where(and(IS_MIRRORED, isNotNull(repositories.nodeId)))
    .orderBy(sql`folded(${repositories.fullName})`);
}

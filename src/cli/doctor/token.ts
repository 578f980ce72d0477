import type { TokenReport } from "../../upstream/client/token-report.ts";
import { listOf } from "../terminal/command.ts";
import { grouped, spanOf } from "../terminal/output.ts";
import { type Finding, Findings, firstNames } from "./finding.ts";

/** Pure. @param now epoch milliseconds */
export function tokenFindings(report: TokenReport, now: number): Finding[] {
  const { fingerprint, state, login, scopes, quota, unseen, unseenUnknown } = report;
  const name = `Token ${fingerprint}`;
  const upstream = new Findings("upstream");
  if (state === "rejected") {
    upstream.problem(
      "token-rejected",
      `${name} is rejected: it is revoked, expired or wrong`,
      "Put a valid one in its place in UPSTREAM_TOKEN, and restart; one that was mended is tried again after five minutes",
    );
    return upstream.all;
  }
  const whose = login === null ? "is nobody's own (an app's)" : `is ${login}'s`;
  const may = scopes === null ? "upstream does not tell its scopes" : `its scopes: ${listOf(scopes) || "none"}`;
  const left = quota.map(({ bucket, limit, remaining }) => `${bucket} ${grouped(remaining)} of ${grouped(limit)}`);
  if (state === "spent")
    upstream.warning(
      "token-limited",
      `${name} is held back by a limit of upstream's`,
      "Wait; `tain status` says until when",
    );
  else upstream.ok(`${name} ${whose}; ${may}; left: ${left.join(", ") || "not limited"}`);
  const low = quota.find(({ limit, remaining, bucket }) => bucket !== "search" && remaining < limit * 0.1);
  if (low)
    upstream.warning(
      "token-quota",
      `${name} has ${grouped(low.remaining)} of ${grouped(low.limit)} left in ${low.bucket}, until it is reset in ${spanOf(low.resetAt.getTime() - now)}: first copies wait`,
      "Wait, add tokens to UPSTREAM_TOKEN, or lengthen CATCH_UP_INTERVAL",
    );
  if (scopes !== null && !scopes.includes("repo"))
    upstream.warning(
      "token-scope",
      `${name} has not the scope repo: private repositories cannot be mirrored, and perhaps nothing written`,
      "Give it the scope repo, unless that is meant so",
    );
  const repositories = new Findings("repositories");
  if (unseen !== null && unseen.length > 0)
    repositories.problem(
      "token-sight",
      `${name} does not see ${firstNames(unseen)}: requests that go by it are answered 404, and the repository is paused`,
      "Give it access, take it out of UPSTREAM_TOKEN, or `tain remove` what it cannot see",
    );
  if (unseen === null && unseenUnknown !== null)
    repositories.warning(
      "token-sight",
      `It is not known which repositories ${name} sees: ${unseenUnknown}`,
      "Ask again later",
    );
  return [...upstream.all, ...repositories.all];
}

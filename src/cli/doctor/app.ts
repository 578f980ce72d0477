import type { Context } from "../../context.ts";
import { type Installation, loadInstallations } from "../../upstream/credentials/installations.ts";
import {
  CredentialRejectedError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/protocol/errors.ts";
import type { ReadAnswer } from "../../upstream/protocol/upstream.ts";
import { NEEDED_PERMISSIONS, permissionName } from "../hooks/app-diagnosis.ts";
import { JsonObject } from "../terminal/json.ts";
import { counted } from "../terminal/output.ts";
import { clockFinding, type Finding, Findings, firstNames, okFinding, problem, upstreamAway } from "./finding.ts";

/** The App that we mirror with: whether upstream accepts its key, whether the clocks agree, and its installations. */
export async function examineAppCredentials(ctx: Context, hasMirror: boolean): Promise<Finding[]> {
  const askedAt = ctx.clock.now().getTime();
  let answer: ReadAnswer;
  try {
    answer = await ctx.upstream.get("/app", { priority: "caller" });
  } catch (error) {
    if (error instanceof UpstreamUnavailableError || error instanceof UpstreamRefusedError)
      return [upstreamAway("The GitHub App cannot be asked for", error, "See that UPSTREAM_URL is right")];
    if (!(error instanceof CredentialRejectedError)) throw error;
    return [
      problem(
        "app-key",
        `Upstream does not accept the GitHub App ${ctx.config.appId}`,
        "See that APP_ID and APP_PRIVATE_KEY belong together, and that the key is still listed on the App's page",
      ),
    ];
  }
  if (answer.kind !== "ok")
    return [problem("app-key", "Upstream shows no such GitHub App", "See that APP_ID is the App's id or client id")];
  const name = new JsonObject(answer.body).string("name");
  const findings = [okFinding("upstream", `${ctx.config.upstreamUrl} knows the GitHub App ${name}`)];
  const aheadMs = answer.upstreamNow.getTime() + 500 - (askedAt + ctx.clock.now().getTime()) / 2;
  // If there are tokens, answers to them have shown upstream's time already.
  if (ctx.config.upstreamTokens.length === 0) findings.push(clockFinding("upstream", aheadMs, 1_000));
  if (hasMirror) findings.push(...installationFindings(await loadInstallations(ctx.db)));
  return findings;
}

/** Pure. */
export function installationFindings(installations: readonly Installation[]): Finding[] {
  const found = new Findings("upstream");
  if (installations.length === 0)
    found.warning(
      "app-nowhere",
      "The GitHub App is installed nowhere, as far as is known",
      "Install it on an account; a running Tain finds it within a minute",
    );
  const suspended = installations.filter(({ suspendedAt }) => suspendedAt !== null);
  const usable = installations.filter((each) => !suspended.includes(each));
  if (usable.length > 0)
    found.ok(`The App is installed on ${firstNames(accountsOf(usable))} (${counted(usable.length, "account")})`);
  if (suspended.length > 0)
    found.problem(
      "app-suspended",
      `The App's installation is suspended on ${firstNames(accountsOf(suspended))}: what it covers is paused`,
      "An owner of the account can unsuspend it in its settings, under GitHub Apps",
    );
  for (const permission of NEEDED_PERMISSIONS) {
    const without = usable.filter(({ permissions }) => !(permission in permissions));
    if (without.length === 0) continue;
    found.problem(
      "app-permission",
      `The App may not read ${permissionName(permission)} on ${firstNames(accountsOf(without))}`,
      "Ask for it on the App's page, under Permissions & events; then an owner of the account has to accept it",
    );
  }
  return found.all;
}

function accountsOf(installations: readonly Installation[]): string[] {
  return installations.map(({ account }) => account);
}

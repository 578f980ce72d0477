import type { Context } from "../../context.ts";
import { type AppAtUpstream, type AppHook, readApp, readAppHook } from "../../upstream/hooks/app-hook.ts";
import type { SentDelivery } from "../../upstream/hooks/hooks.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { listOf } from "../terminal/command.ts";
import { arrivalFindings, failureFinding, type HookFinding } from "./diagnosis.ts";

/** The permissions that an account has to grant a mirror. GitHub docs: metadata always comes with the others. */
export const NEEDED_PERMISSIONS = ["metadata", "issues", "pull_requests"] as const;

export interface ExaminedApp {
  app: AppAtUpstream;
  /** null: upstream shows none. */
  hook: AppHook | null;
}

/** @throws what `upstream` throws; UpstreamRefusedError when it shows no such App */
export async function examineApp(ctx: Pick<Context, "upstream">): Promise<ExaminedApp> {
  const app = await readApp(ctx.upstream);
  try {
    return { app, hook: await readAppHook(ctx.upstream) };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { app, hook: null };
  }
}

/** Where a person makes the changes for which upstream has no API. */
const ON_APP_PAGE = "on the App's page at upstream (Settings, Developer settings, GitHub Apps)";

/** What is wrong with the App and its webhook, the gravest first; nothing when all is well. Pure. */
export function diagnoseApp({
  app,
  hook,
  address,
  wantedEvents,
  sent,
  arrived,
}: ExaminedApp & {
  address: string;
  wantedEvents: readonly string[];
  sent: readonly SentDelivery[] | null;
  arrived: readonly string[];
}): HookFinding[] {
  const mends = "`tain hooks register app` mends it";
  const findings: HookFinding[] = [];
  if (!hook || hook.url !== address)
    findings.push({
      level: "problem",
      kind: "missing",
      says: hook?.url
        ? `The App's webhook sends to ${hook.url}, not to ${address}: changes are found by catch-up only`
        : `The App has no webhook that sends to ${address}: changes are found by catch-up only`,
      todo: `${mends}, if the webhook is switched on ${ON_APP_PAGE}`,
    });
  else if (!hook.hasSecret)
    findings.push({
      level: "problem",
      kind: "no-secret",
      says: "The App's webhook has no secret, so its deliveries are not signed and are refused",
      todo: mends,
    });
  const unseen = NEEDED_PERMISSIONS.filter((name) => !(name in app.permissions));
  if (unseen.length > 0)
    findings.push({
      level: "problem",
      kind: "permission",
      says: `The App does not ask for the permission to read ${listOf(unseen.map(permissionName))}`,
      todo: `Add it ${ON_APP_PAGE}; then each account has to accept it`,
    });
  const missing = wantedEvents.filter((event) => !app.events.includes(event));
  if (missing.length > 0)
    findings.push({
      level: "problem",
      kind: "events",
      says: `The App is not subscribed to ${listOf(missing)}`,
      todo: `Tick ${missing.length === 1 ? "it" : "them"} ${ON_APP_PAGE}, under Permissions & events`,
    });
  const [last] = sent ?? [];
  if (last && last.status !== "OK") findings.push(failureFinding(last, address, "app"));
  else if (last) findings.push(...arrivalFindings(sent ?? [], arrived, address));
  else if (sent !== null && hook) findings.push(UNPROVEN_APP);
  return findings;
}

export const UNPROVEN_APP: HookFinding = {
  level: "warning",
  kind: "unproven",
  says: "Upstream has sent the App nothing in the time that it remembers, so nobody knows whether deliveries arrive",
  todo: "Change something in a repository that it is installed on, then `tain hooks check app`",
};

/** The finding that upstream does not accept the App, or shows it no webhook. Pure. */
export function appRefusal({ message }: UpstreamRefusedError): HookFinding {
  return {
    level: "problem",
    kind: "permission",
    says: message,
    todo: `See that APP_ID and APP_PRIVATE_KEY belong together, and that the webhook is switched on ${ON_APP_PAGE}`,
  };
}

export function permissionName(permission: string): string {
  return permission.replaceAll("_", " ");
}

import { LATER_EVENTS } from "../../sync/events/followed.ts";
import type { HookAtUpstream, SentDelivery } from "../../upstream/hooks/hooks.ts";
import { listOf } from "../terminal/command.ts";
import { counted } from "../terminal/output.ts";

/** A problem of a hook, and what to do about it. */
export interface HookFinding {
  level: "problem" | "warning";
  kind:
    | "permission"
    | "missing"
    | "disabled"
    | "no-secret"
    | "wrong-secret"
    | "events"
    | "unreachable"
    | "refused"
    | "failing"
    | "elsewhere"
    | "unproven";
  says: string;
  todo: string;
}

export function hookProblem(kind: HookFinding["kind"], says: string, todo: string): HookFinding {
  return { level: "problem", kind, says, todo };
}

export interface Examined {
  fullName: string;
  /** The receiver's address. */
  address: string;
  /** The hook that sends there, if there is one. */
  hook: HookAtUpstream | null;
  wantedEvents: readonly string[];
  /** What upstream says it sent, the newest first; null: it does not say. */
  sent: readonly SentDelivery[] | null;
  /** The GUIDs of those deliveries that our inbox has. */
  arrived: readonly string[];
}

/** What is wrong with a repository's hook, the gravest first; nothing when all is well. Pure. */
export function diagnose({ fullName, address, hook, wantedEvents, sent, arrived }: Examined): HookFinding[] {
  const repair = `\`tain hooks register ${fullName}\` mends it`;
  if (!hook) {
    const says = `No hook of the repository sends to ${address}: changes are found by catch-up only`;
    return [hookProblem("missing", says, `\`tain hooks register ${fullName}\` makes one`)];
  }
  const findings: HookFinding[] = [];
  if (!hook.isActive) findings.push(hookProblem("disabled", "The hook is switched off at upstream", repair));
  if (!hook.hasSecret)
    findings.push({
      level: "problem",
      kind: "no-secret",
      says: "The hook has no secret, so its deliveries are not signed and are refused",
      todo: repair,
    });
  const missing = hook.events.includes("*") ? [] : wantedEvents.filter((event) => !hook.events.includes(event));
  if (missing.length > 0) findings.push(eventsFinding(missing, repair));

  const [last] = sent ?? [];
  if (last && last.status !== "OK") findings.push(failureFinding(last, address, fullName));
  else if (last) findings.push(...arrivalFindings(sent ?? [], arrived, address));
  else if (sent !== null && hook.isActive)
    findings.push({
      level: "warning",
      kind: "unproven",
      says: "Upstream has sent nothing in the time that it remembers, so nobody knows whether deliveries arrive",
      todo: `\`tain hooks register ${fullName}\` sends a ping and waits for it`,
    });
  return findings;
}

function eventsFinding(missing: readonly string[], repair: string): HookFinding {
  const says = `The hook does not send ${listOf(missing)}`;
  if (missing.some((event) => !LATER_EVENTS.has(event))) return hookProblem("events", says, repair);
  const todo = `${repair}, unless upstream is of a time before there were sub-issues: then it has no such events`;
  return { level: "warning", kind: "events", says, todo };
}

/** Compares the deliveries that upstream says were taken with those in our inbox. Pure. */
export function arrivalFindings(
  sent: readonly SentDelivery[],
  arrived: readonly string[],
  address: string,
): HookFinding[] {
  const taken = sent.filter(({ status }) => status === "OK");
  const failed = sent.length - taken.length;
  const findings: HookFinding[] = [];
  if (!taken.some(({ guid }) => arrived.includes(guid)))
    findings.push({
      level: "problem",
      kind: "elsewhere",
      says: "Upstream says that its deliveries are taken, and the inbox of this database has none of them",
      todo: `See that ${address} leads to receivers that use this DATABASE_URL`,
    });
  if (failed > 0)
    findings.push({
      level: "warning",
      kind: "failing",
      says: `${counted(failed, "delivery", "deliveries")} of the last ${sent.length} failed, though the newest came through`,
      todo: "Redeliver them at upstream (it keeps them three days); a catch-up finds most of it anyway",
    });
  return findings;
}

/** The cause of a failed delivery, by upstream's status and words. Pure. */
export function failureFinding({ statusCode, status }: SentDelivery, address: string, fullName: string): HookFinding {
  // Upstream uses these words if a server answered. Otherwise its words name the fault of the connection.
  const isAnswer = /^Invalid HTTP Response/i.test(status) || (statusCode < 500 && statusCode > 0);
  if (!isAnswer)
    return hookProblem(
      "unreachable",
      `Upstream cannot reach ${address}: ${status}`,
      "See that PUBLIC_URL is this instance's address, open to upstream through firewalls, with a certificate that holds, and that `web` runs; it has ten seconds to answer",
    );
  switch (statusCode) {
    case 401:
      return hookProblem(
        "wrong-secret",
        "Deliveries are refused with 401: the hook's secret is none that the receiver knows",
        `Give the receiver and the commands the same WEBHOOK_SECRET; then \`tain hooks register ${fullName}\` gives the hook its own`,
      );
    case 413:
      return hookProblem(
        "refused",
        "Deliveries are refused with 413: they are too large for what stands before the receiver",
        "Let the proxy pass bodies of 25 MB to /webhooks",
      );
    case 502:
    case 503:
    case 504:
      return hookProblem(
        "failing",
        `Deliveries are answered ${statusCode}: a proxy finds no receiver, or neither store can keep them`,
        "See that `web` runs; `tain doctor` says how the stores are",
      );
    default:
      return statusCode >= 500
        ? hookProblem(
            "failing",
            `Deliveries are answered ${statusCode}`,
            "The log of `web`, or of the proxy before it, says why",
          )
        : hookProblem(
            "refused",
            `Deliveries are answered ${statusCode}: what answers at ${address} is no receiver of Tain's`,
            "See that PUBLIC_URL leads to `web`, and that the proxy passes /webhooks as it is, without redirects",
          );
  }
}

/** The finding that upstream does not let us see or make hooks. `reason` is upstream's text. Pure. */
export function permissionFinding(reason: string): HookFinding {
  return {
    level: "problem",
    kind: "permission",
    says: reason,
    todo: "Let a token of UPSTREAM_TOKEN manage webhooks (classic: admin:repo_hook or repo; fine-grained: Webhooks, read and write), as an administrator of the repository; or make the hook by hand",
  };
}

import { userInfo } from "node:os";
import { beginsAsOurs } from "../api/callers/our-tokens.ts";
import type { AuditActor } from "../work/audit-log.ts";
import type { Command, Within } from "./terminal/command.ts";

/** Commands that change nothing and give no secret away, and those that run before there is a database. */
const UNRECORDED: ReadonlySet<string> = new Set([
  ...["status", "quota", "follow", "mcp", "doctor", "audit-log", "writes list", "token list"],
  ...["deliveries list", "deliveries show", "jobs list", "hooks check", "hooks list"],
  ...["targets list", "targets check", "targets deliveries"],
  ...["sql", "export", "readers list"],
  ...["init", "up", "migrate", "app create", "web", "worker", "scheduler"],
]);

/** Whether the audit log has the command. A new one is recorded unless it is named here. */
export function isRecorded({ name }: Pick<Command, "name">): boolean {
  return !UNRECORDED.has(name);
}

export function actionOf({ name }: Pick<Command, "name">): string {
  return `command.${name.replaceAll(" ", ".")}`;
}

/** Who gives the command: the operator on the page, or the machine's user. */
export function commandActor(within: Within | undefined): AuditActor {
  return within ? { kind: "operator", ...within.by } : { kind: "terminal", name: userInfo().username };
}

const LONGEST_ARGUMENT = 200;

/** A command's arguments as the audit log may show them. Pure. */
export function withoutSecretArguments(args: readonly string[]): string[] {
  return args.map((arg) => {
    const [, option = "", value = ""] = /^(--[a-z-]+=)?(.*)$/s.exec(arg) ?? [];
    return `${option}${shownValue(value)}`.slice(0, LONGEST_ARGUMENT);
  });
}

function shownValue(value: string): string {
  if (beginsAsOurs(value) || /(gh[a-z]_|github_pat_)\w/.test(value)) return "[redacted]";
  // A target's address may hold a key, in its path or query.
  const url = /^[a-z]+:\/\//i.test(value) ? URL.parse(value) : null;
  return url ? `${url.origin}/…` : value;
}

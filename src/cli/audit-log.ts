import type { Context } from "../context.ts";
import { type ListedAct, listActs } from "../work/audit-log.ts";
import type { Command, Given } from "./terminal/command.ts";
import { LIMIT, readLimit, readSince } from "./terminal/listing.ts";
import { openInstance } from "./terminal/open-instance.ts";
import { type Output, plain, spanOf, styled, tableLines } from "./terminal/output.ts";

export const auditLog: Command = {
  name: "audit-log",
  values: {
    since: { takes: "TIME", about: "only what was within this time, such as 1h" },
    actor: {
      takes: "WHO",
      about: "only one actor's: a kind, a user, a login, a token's name, id or fingerprint, or an address",
    },
    action: { takes: "ACTION", about: "only such acts: hook, hook.create, command, command.token, session, refusal" },
    limit: LIMIT,
  },
  about: `
Lists who changed what here, the newest first: hooks and tokens, commands with their arguments,
exports of secrets, sign-ins to the operator's page, and refused callers, counted by the minute.
It tells no secret. Kept for AUDIT_LOG_RETENTION, and at most 100,000 rows of each kind.
What callers wrote at upstream is in \`tain writes list\`. \`tain audit\` is another thing: it compares
the mirror with upstream.`,
  run: runAuditLog,
};

async function runAuditLog({ values, env, resources, within }: Given, output: Output): Promise<number> {
  const sinceMs = readSince(values);
  const limit = readLimit(values);
  const actor = values.get("actor");
  const action = values.get("action");
  const { ctx } = await openInstance(env, resources, within);
  const entries = await listActs(ctx, {
    limit,
    ...(sinceMs === null ? {} : { since: new Date(ctx.clock.now().getTime() - sinceMs) }),
    ...(actor === undefined ? {} : { actor }),
    ...(action === undefined ? {} : { action }),
  });
  output.document({ entries });
  const none =
    sinceMs === null && actor === undefined && action === undefined
      ? "The audit log has no entry yet"
      : "No entry of the audit log is like that";
  output.line(entries.length === 0 ? none : entriesTable(entries, ctx));
  return 0;
}

/** Pure but for colours. */
function entriesTable(entries: readonly ListedAct[], { clock }: Pick<Context, "clock">): string {
  const now = clock.now().getTime();
  const rows = entries.map((entry) => [
    `${spanOf(now - (entry.lastAt ?? entry.at).getTime())} ago`,
    plain(
      [entry.actorKind, entry.login ?? entry.actor, entry.actorName && `(${entry.actorName})`]
        .filter(Boolean)
        .join(" "),
    ),
    entry.address ?? "",
    entry.action,
    plain([entry.object, entry.objectName && `(${entry.objectName})`, ...entry.arguments].filter(Boolean).join(" ")),
    `${styled(entry.outcome === "done" ? "green" : "red", entry.outcome)}${entry.times > 1 ? `, ${entry.times} times` : ""}`,
  ]);
  return tableLines(["WHEN", "WHO", "FROM", "ACTION", "OBJECT", "OUTCOME"], rows);
}

import { type ListedWrite, listWrites } from "../api/record/writes.ts";
import type { Context } from "../context.ts";
import type { Action, CommandGroup, Given } from "./terminal/command.ts";
import { LIMIT, readLimit, readSince } from "./terminal/listing.ts";
import { openInstance } from "./terminal/open-instance.ts";
import { type Output, plain, spanOf, styled, tableLines } from "./terminal/output.ts";
import { readNames } from "./terminal/patterns.ts";

const list: Action = {
  name: "writes list",
  summary: "the newest writes: which caller wrote what, and what upstream answered",
  values: {
    since: { takes: "TIME", about: "only those begun within this time, such as 1h" },
    token: {
      takes: "TOKEN",
      about: "only those of one caller: a login, a token's name, id or fingerprint, or the token",
    },
    repo: { takes: "NAME", about: "only those to one repository: owner/name" },
    limit: LIMIT,
  },
  about: `
Lists what callers had this mirror write at upstream, the newest first, whatever became of it.
WHO is the account, and whose token named it: the name or id that \`tain token list\` shows, or
the fingerprint of one of upstream's. What Tain itself refused was not sent, and is not listed.
With --json each write also has the ids of the request, here and at upstream.`,
  run: runList,
};

export const writes: CommandGroup = {
  name: "writes",
  about: "Works on the record of writes, kept for WRITE_RETENTION.",
  actions: { list },
};

async function runList({ values, env, resources, within }: Given, output: Output): Promise<number> {
  const sinceMs = readSince(values);
  const limit = readLimit(values);
  const repo = values.get("repo");
  const [repository] = repo === undefined ? [] : readNames([repo]);
  const token = values.get("token");
  const { ctx } = await openInstance(env, resources, within);
  const found = await listWrites(ctx, {
    limit,
    ...(sinceMs === null ? {} : { since: new Date(ctx.clock.now().getTime() - sinceMs) }),
    ...(repository === undefined ? {} : { repository }),
    ...(token === undefined ? {} : { token }),
  });
  output.document({ writes: found });
  const none =
    sinceMs === null && repository === undefined && token === undefined
      ? "Nobody has written anything through this mirror yet"
      : "No write in the record is like that";
  output.line(found.length === 0 ? none : writesTable(found, ctx));
  return 0;
}

/** Pure but for colours. */
function writesTable(found: readonly ListedWrite[], { clock }: Pick<Context, "clock">): string {
  const now = clock.now().getTime();
  const rows = found.map((write) => [
    `${spanOf(now - write.begunAt.getTime())} ago`,
    write.login ?? `user ${write.userId}`,
    `${write.tokenOf} ${write.tokenName ?? write.token}`,
    plain(`${write.method} ${write.path}`),
    write.route?.startsWith("mutation ") ? write.route : write.route === null ? "forwarded" : "REST",
    outcomeOf(write),
  ]);
  return tableLines(["BEGUN", "WHO", "TOKEN", "WROTE", "ASKED BY", "ANSWER"], rows);
}

function outcomeOf({ outcome, status, endedAt }: ListedWrite): string {
  switch (outcome) {
    case "answered":
      return styled(status !== null && status < 300 ? "green" : "red", String(status));
    case "unsent":
      return styled("dim", "not sent");
    case "unknown":
      return styled("red", endedAt === null ? "sent, answer unknown or under way" : "sent, answer unknown");
    default:
      throw new Error(`There is no outcome ${outcome satisfies never}`);
  }
}

import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { faultOf } from "../../events/address-guard.ts";
import { lastSent } from "../../events/sent.ts";
import { listTargets, SealedSecretError, secretOf, type Target } from "../../events/target.ts";
import { type Waiting, waitingFor } from "../../events/waiting.ts";
import type { Command, Given } from "../command.ts";
import { openInstance } from "../open-instance.ts";
import { counted, type Output, plain, spanOf, styled, table } from "../output.ts";

export const list: Command = {
  name: "targets list",
  summary: "where events are sent, and what came of the last request",
  about: `
Lists every target: those that callers registered by the hooks API, and those that were added here.
WAITS says for how long the oldest event has waited that the target has not accepted.`,
  run: runList,
};

export const check: Command = {
  name: "targets check",
  summary: "what is wrong with targets, in words",
  about: `
Says of each target what keeps events from it: it is disabled, its address may not be sent to, its
secret cannot be read, or its last request failed. The exit code is 1 if there is anything.`,
  run: runCheck,
};

interface Listed {
  id: number;
  for: string;
  url: string;
  events: readonly string[];
  madeBy: Target["madeBy"];
  state: "on" | "off" | "disabled";
  lastStatus: string | null;
  waiting: Waiting | null;
  problem: string | null;
}

async function readTargets(ctx: Pick<Context, "db" | "config">): Promise<Listed[]> {
  const found = await listTargets(ctx);
  const last = await lastSent(
    ctx,
    found.map(({ id }) => id),
  );
  const waiting = await waitingFor(ctx);
  const names = await namesOf(ctx, found);
  const listed: Listed[] = [];
  for (const target of found) {
    const { id, url, events, madeBy, active, disabledAt } = target;
    const lastStatus = last.get(id)?.status ?? null;
    listed.push({
      ...{ id, for: names.get(id) ?? "?", url, events, madeBy, lastStatus, waiting: waiting.get(id) ?? null },
      state: disabledAt !== null ? "disabled" : active ? "on" : "off",
      problem: await problemOf(ctx, target, lastStatus),
    });
  }
  return listed;
}

async function problemOf(
  ctx: Pick<Context, "db" | "config">,
  target: Target,
  lastStatus: string | null,
): Promise<string | null> {
  if (target.problem !== null) return target.problem;
  if (faultOf(ctx.config.targetsAllowed, target.url) !== null)
    return "Its address is not on the public Internet, and TARGETS_ALLOWED does not name it";
  try {
    await secretOf(ctx, target);
  } catch (error) {
    if (!(error instanceof SealedSecretError)) throw error;
    return error.message;
  }
  return lastStatus === null || lastStatus === "OK" ? null : `Its last request failed: ${lastStatus}`;
}

/** What each hears of, as it is called now. */
async function namesOf({ db }: Pick<Context, "db">, found: readonly Target[]): Promise<Map<number, string>> {
  const ids = (kind: Target["scope"]["kind"]) => found.flatMap(({ scope }) => (scope.kind === kind ? [scope.id] : []));
  const rows = await db.query<{ kind: string; id: number; name: string }>(sql`
    select 'repository' as kind, id::float8 as id, full_name as name from repositories where id = any(${ids("repository")}::bigint[])
    union all select 'organization', id::float8, login || '/*' from users where id = any(${ids("organization")}::bigint[])`);
  const names = new Map(rows.map(({ kind, id, name }) => [`${kind} ${id}`, name]));
  return new Map(
    found.map(({ id, scope }) => [
      id,
      scope.kind === "everything"
        ? "everything"
        : (names.get(`${scope.kind} ${scope.id}`) ?? `${scope.kind} ${scope.id}`),
    ]),
  );
}

async function runList({ env, resources }: Given, output: Output): Promise<number> {
  const { ctx } = await openInstance(env, resources);
  const listed = await readTargets(ctx);
  output.document({ targets: listed });
  if (listed.length === 0) output.line("There are no targets: `tain targets add URL` makes one");
  else output.line(targetsTable(listed, ctx.clock.now()));
  return 0;
}

/** Pure but for colours. */
function targetsTable(listed: readonly Listed[], now: Date): string {
  const rows = listed.map(({ id, for: scope, url, events, madeBy, state, lastStatus, waiting }) => [
    String(id),
    scope,
    plain(url),
    events.join(","),
    madeBy,
    state === "on" ? state : styled("red", state),
    lastStatus ?? "unused",
    waiting?.oldestAt ? spanOf(now.getTime() - waiting.oldestAt.getTime()) : "-",
  ]);
  return table(["ID", "FOR", "SENDS TO", "EVENTS", "MADE BY", "STATE", "LAST ANSWER", "WAITS"], rows);
}

async function runCheck({ env, resources }: Given, output: Output): Promise<number> {
  const { ctx } = await openInstance(env, resources);
  const listed = await readTargets(ctx);
  const wrong = listed.filter(({ problem }) => problem !== null);
  output.document({ targets: listed.map(({ id, problem }) => ({ id, problem })) });
  for (const { id, url, problem } of wrong) output.line(`${id} ${plain(url)}: ${styled("red", plain(problem ?? ""))}`);
  if (wrong.length === 0) output.line(`Nothing is wrong with ${counted(listed.length, "target")}`);
  return wrong.length === 0 ? 0 : 1;
}

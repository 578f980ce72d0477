import { findListedTargets, type ListedTarget } from "../../events/listed-targets.ts";
import type { Action, Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { counted, type Output, plain, spanOf, styled, tableLines } from "../terminal/output.ts";

export const list: Action = {
  name: "targets list",
  summary: "where events are sent, and what came of the last request",
  about: `
Lists every target: those that callers registered by the hooks API, and those that were added here.
MADE BY names who registered it, with the name, id or fingerprint of their token, or the operator. A target
is paused when that token may register hooks there no more. WAITS says for how long the oldest event has waited that the target has not accepted.`,
  run: runList,
};

export const check: Action = {
  name: "targets check",
  summary: "what is wrong with targets, in words",
  about: `
Says of each target what keeps events from it: it is disabled, its address may not be sent to, its
secret cannot be read, or its last request failed. The exit code is 1 if there is anything.`,
  run: runCheck,
};

async function runList({ env, resources, within }: Given, output: Output): Promise<number> {
  const { ctx } = await openInstance(env, resources, within);
  const listed = await findListedTargets(ctx);
  output.document({ targets: listed });
  if (listed.length === 0) output.line("There are no targets: `tain targets add URL` makes one");
  else output.line(targetsTable(listed, ctx.clock.now()));
  return 0;
}

/** Longer lists would make lines that no screen holds. */
const MOST_EVENTS = 12;

/** Pure but for colours. */
function targetsTable(listed: readonly ListedTarget[], now: Date): string {
  const rows = listed.map(({ id, for: scope, url, format, madeBy, maker, state, lastStatus, waiting, ...wanted }) => [
    String(id),
    scope,
    format === null ? plain(url) : `${plain(url)} as ${format}`,
    plain(wantedBy(wanted)),
    maker === null ? madeBy : `${maker.login ?? maker.userId} (${maker.tokenName ?? maker.token})`,
    state === "on" ? state : styled("red", state),
    lastStatus ?? "unused",
    waiting?.oldestAt ? spanOf(now.getTime() - waiting.oldestAt.getTime()) : "-",
  ]);
  return tableLines(["ID", "FOR", "SENDS TO", "EVENTS", "MADE BY", "STATE", "LAST ANSWER", "WAITS"], rows);
}

/** Pure. */
function wantedBy({ events, actions, labels }: Pick<ListedTarget, "events" | "actions" | "labels">): string {
  return [
    events.length > MOST_EVENTS ? counted(events.length, "event") : events.join(","),
    ...(actions === null ? [] : [`if ${actions.join(",")}`]),
    ...(labels === null ? [] : [`with ${labels.join(",")}`]),
  ].join(" ");
}

async function runCheck({ env, resources, within }: Given, output: Output): Promise<number> {
  const { ctx } = await openInstance(env, resources, within);
  const listed = await findListedTargets(ctx);
  const wrong = listed.filter(({ problem }) => problem !== null);
  output.document({ targets: listed.map(({ id, problem }) => ({ id, problem })) });
  for (const { id, url, problem } of wrong) output.line(`${id} ${plain(url)}: ${styled("red", plain(problem ?? ""))}`);
  if (wrong.length === 0) output.line(`Nothing is wrong with ${counted(listed.length, "target")}`);
  return wrong.length === 0 ? 0 : 1;
}

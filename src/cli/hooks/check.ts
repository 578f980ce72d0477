import type { Context } from "../../context.ts";
import { arrivedFrom } from "../../inbox/arrivals.ts";
import { wantedEvents } from "../../sync/following/hook-subscriptions.ts";
import { APP_DELIVERIES } from "../../upstream/hooks/app-hook.ts";
import { listRepositoryHooks, recentDeliveries } from "../../upstream/hooks/hooks.ts";
import type { Action, Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, styled } from "../terminal/output.ts";
import { appRefusal, diagnoseApp, examineApp } from "./app-diagnosis.ts";
import { diagnose, type HookFinding, permissionFinding } from "./diagnosis.ts";
import { APP_WORD, findHookNames, readHookNames } from "./hook-names.ts";
import { findHooked } from "./own-secret.ts";
import { needAddress, orRefusal } from "./repository-hooks.ts";

export const check: Action = {
  name: "hooks check",
  summary: "say in words what is wrong with our hooks, and what to do",
  takes: "[app|owner/name…]",
  about: `
Looks at our hook of each repository, or of all that are mirrored (of a GitHub App at its own
webhook, \`app\`, instead), at what upstream says of its
last deliveries, and whether they stand in the inbox. Changes nothing. Exit code 1 when
something is wrong.`,
  run: runCheck,
};

async function runCheck({ words, env, resources, within }: Given, output: Output): Promise<number> {
  const names = readHookNames(words);
  const opened = await openInstance(env, resources, within);
  const address = await needAddress(opened);
  const checked: Checked[] = [];
  for (const repository of await findHookNames(opened.ctx, names)) {
    const one = await checkNamedHook(opened.ctx, repository, address);
    checked.push(one);
    output.line(`${repository}: ${one.findings.length === 0 ? styled("green", "well") : ""}`.trim());
    for (const { level, says, todo } of one.findings)
      output.line(`  ${styled(level === "problem" ? "red" : "yellow", level)}: ${says}\n    ${todo}`);
  }
  output.document({ address, repositories: checked });
  if (checked.length === 0) output.line("Nothing is mirrored yet, so there are no hooks to check");
  return checked.some(({ findings }) => findings.some(({ level }) => level === "problem")) ? 1 : 0;
}

interface Checked {
  repository: string;
  hookId: number | null;
  findings: HookFinding[];
}

/**
 * Checks a hook by what upstream shows and what the inbox has. @throws the client's error if upstream cannot be asked
 */
export async function checkNamedHook(ctx: Context, name: string, address: string): Promise<Checked> {
  return name === APP_WORD ? await checkAppHook(ctx, address) : await checkHook(ctx, name, address);
}

async function checkAppHook(ctx: Context, address: string): Promise<Checked> {
  const asked = await orRefusal(() => examineApp(ctx));
  if ("refusal" in asked) return { repository: APP_WORD, hookId: null, findings: [appRefusal(asked.error)] };
  const sent = await recentDeliveries(ctx.upstream, APP_DELIVERIES);
  const taken = (sent ?? []).filter(({ status }) => status === "OK").map(({ guid }) => guid);
  const findings = diagnoseApp({
    ...asked.found,
    address,
    wantedEvents: await wantedEvents(ctx, null),
    sent,
    arrived: await arrivedFrom(ctx, null, taken),
  });
  return { repository: APP_WORD, hookId: null, findings };
}

async function checkHook(ctx: Context, repository: string, address: string): Promise<Checked> {
  const asked = await orRefusal(async () => listRepositoryHooks(ctx.upstream, await findHooked(ctx, repository)));
  if ("refusal" in asked) return { repository, hookId: null, findings: [permissionFinding(asked.refusal)] };
  const hook = asked.found.find(({ url }) => url === address) ?? null;
  const sent = hook && (await recentDeliveries(ctx.upstream, `${hook.path}/deliveries`));
  const taken = (sent ?? []).filter(({ status }) => status === "OK").map(({ guid }) => guid);
  const arrived = hook ? await arrivedFrom(ctx, hook.id, taken) : [];
  const events = await wantedEvents(ctx, repository);
  const findings = diagnose({ fullName: repository, address, hook, wantedEvents: events, sent, arrived });
  return { repository, hookId: hook?.id ?? null, findings };
}

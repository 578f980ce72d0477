import type { Context } from "../../context.ts";
import { APP_DELIVERIES } from "../../upstream/hooks/app-hook.ts";
import { type HookAtUpstream, listRepositoryHooks, recentDeliveries } from "../../upstream/hooks/hooks.ts";
import type { Action, Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, styled, tableLines } from "../terminal/output.ts";
import { examineApp } from "./app-diagnosis.ts";
import { APP_WORD, findHookNames, readHookNames } from "./hook-names.ts";
import { findHooked } from "./own-secret.ts";
import { orRefusal, reachableAddress } from "./repository-hooks.ts";

export const list: Action = {
  name: "hooks list",
  summary: "the hooks that upstream has, ours and others'",
  takes: "[app|owner/name…]",
  about: `
Asks upstream for the hooks of the repositories, or of all that are mirrored: where each sends
to, which events, and what came of its last delivery. Ours are those that send to this instance.
Of a GitHub App it is the App's own webhook (\`app\`), and those of what it does not cover.`,
  run: runList,
};

async function runList({ words, env, resources, within }: Given, output: Output): Promise<number> {
  const names = readHookNames(words);
  const opened = await openInstance(env, resources, within);
  const { ctx } = opened;
  const address = await reachableAddress(opened);
  const listed: { repository: string; hooks: (HookAtUpstream & { isOurs: boolean })[]; problem: string | null }[] = [];
  for (const repository of await findHookNames(ctx, names)) {
    const asked = await orRefusal(async () =>
      repository === APP_WORD ? listAppHook(ctx) : listRepositoryHooks(ctx.upstream, await findHooked(ctx, repository)),
    );
    const found = "found" in asked ? asked.found.map((hook) => ({ ...hook, isOurs: hook.url === address })) : [];
    listed.push({ repository, hooks: found, problem: "refusal" in asked ? asked.refusal : null });
  }
  output.document({ address, repositories: listed });
  const rows = listed.flatMap(({ repository, hooks: found, problem }) =>
    found.length === 0
      ? [[repository, "-", "-", problem === null ? "no hook" : styled("red", problem)]]
      : found.map((hook) => [
          repository,
          repository === APP_WORD ? "-" : String(hook.id),
          hook.isOurs ? "ours" : "another's",
          hook.url,
          hook.isActive ? "on" : styled("red", "off"),
          hook.lastResponse.code === null ? hook.lastResponse.status : String(hook.lastResponse.code),
          hook.events.join(","),
        ]),
  );
  if (rows.length === 0) output.line("Nothing is mirrored yet, so there are no hooks to ask for");
  else output.line(tableLines(["REPOSITORY", "HOOK", "WHOSE", "SENDS TO", "STATE", "LAST ANSWER", "EVENTS"], rows));
  return listed.every(({ problem }) => problem === null) ? 0 : 1;
}

/** The App's webhook, in the form of a repository's hook. */
async function listAppHook(ctx: Context): Promise<HookAtUpstream[]> {
  const { app, hook } = await examineApp(ctx);
  if (!hook) return [];
  const [last] = (await recentDeliveries(ctx.upstream, APP_DELIVERIES)) ?? [];
  return [
    {
      ...{ id: app.id, path: "/app/hook/config", url: hook.url, isActive: true, events: app.events },
      ...{ hasSecret: hook.hasSecret },
      lastResponse: { code: last?.statusCode ?? null, status: last?.status ?? "unused" },
    },
  ];
}

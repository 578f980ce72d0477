import type { Context } from "../../context.ts";
import { arrivedFrom } from "../../inbox/deliveries.ts";
import { UpstreamRefusedError } from "../../upstream/client/errors.ts";
import { recentAppDeliveries } from "../../upstream/hooks/app-hook.ts";
import {
  deleteRepositoryHook,
  type HookAtUpstream,
  listRepositoryHooks,
  recentDeliveries,
} from "../../upstream/hooks/hooks.ts";
import { type Command, type CommandGroup, type Given, UsageError } from "../command.ts";
import { appRefusal, diagnoseApp, examineApp } from "../doctor/app-diagnosis.ts";
import { openInstance } from "../open-instance.ts";
import { type Output, styled, table } from "../output.ts";
import { readNames } from "../repositories/patterns.ts";
import { diagnose, type HookFinding, permissionFinding } from "./diagnosis.ts";
import { register } from "./register.ts";
import { followedEvents, needAddress, reachableAddress } from "./repository-hooks.ts";
import { rotate } from "./rotate.ts";
import { APP_TARGET, hookTargets, readTargets } from "./targets.ts";

const list: Command = {
  name: "hooks list",
  summary: "the hooks that upstream has, ours and others'",
  takes: "[app|owner/name…]",
  about: `
Asks upstream for the hooks of the repositories, or of all that are mirrored: where each sends
to, which events, and what came of its last delivery. Ours are those that send to this instance.
Of a GitHub App it is the App's own webhook (\`app\`), and those of what it does not cover.`,
  run: runList,
};

const check: Command = {
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

const remove: Command = {
  name: "hooks remove",
  summary: "delete our hooks at upstream",
  takes: "owner/name…",
  about: `
Deletes the hook that sends to this instance; hooks of others stay. The repository may be mirrored
or not. While it is mirrored, the next \`npm start\` registers its hook again.`,
  run: runRemove,
};

export const hooks: CommandGroup = {
  name: "hooks",
  summary: "register, list, check, rotate and remove the webhooks at upstream",
  about: `
Works on the repositories' webhooks at upstream. They send to PUBLIC_URL/webhooks, signed with
the first WEBHOOK_SECRET; where neither is set, to the instance that runs here, if upstream can
reach it.`,
  actions: { register, list, check, rotate, remove },
};

/** What upstream refuses is said of the one repository; the others go on. */
async function orRefusal<T>(
  ask: () => Promise<T>,
): Promise<{ found: T } | { refusal: string; error: UpstreamRefusedError }> {
  try {
    return { found: await ask() };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { refusal: error.message, error };
  }
}

async function runList({ words, env }: Given, output: Output): Promise<number> {
  const names = readTargets(words);
  await using resources = new AsyncDisposableStack();
  const opened = await openInstance(env, resources);
  const { ctx } = opened;
  const address = await reachableAddress(opened);
  const listed: { repository: string; hooks: (HookAtUpstream & { isOurs: boolean })[]; problem: string | null }[] = [];
  for (const repository of await hookTargets(ctx, names)) {
    const asked = await orRefusal(() =>
      repository === APP_TARGET ? listAppHook(ctx) : listRepositoryHooks(ctx.upstream, repository),
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
          repository === APP_TARGET ? "-" : String(hook.id),
          hook.isOurs ? "ours" : "another's",
          hook.url,
          hook.isActive ? "on" : styled("red", "off"),
          hook.lastResponse.code === null ? hook.lastResponse.status : String(hook.lastResponse.code),
          hook.events.join(","),
        ]),
  );
  if (rows.length === 0) output.line("Nothing is mirrored yet, so there are no hooks to ask for");
  else output.line(table(["REPOSITORY", "HOOK", "WHOSE", "SENDS TO", "STATE", "LAST ANSWER", "EVENTS"], rows));
  return listed.every(({ problem }) => problem === null) ? 0 : 1;
}

/** The App's one webhook, in the words of a repository's. */
async function listAppHook(ctx: Context): Promise<HookAtUpstream[]> {
  const { app, hook } = await examineApp(ctx);
  if (!hook) return [];
  const [last] = (await recentAppDeliveries(ctx.upstream)) ?? [];
  return [
    {
      ...{ id: app.id, path: "/app/hook/config", url: hook.url, isActive: true, events: app.events },
      ...{ hasSecret: hook.hasSecret },
      lastResponse: { code: last?.statusCode ?? null, status: last?.status ?? "unused" },
    },
  ];
}

interface Checked {
  repository: string;
  hookId: number | null;
  findings: HookFinding[];
}

/** How the App's webhook is, by what upstream and the inbox say. @throws what upstream throws when it cannot be asked */
export async function checkAppHook(ctx: Context, address: string): Promise<Checked> {
  const asked = await orRefusal(() => examineApp(ctx));
  if ("refusal" in asked) return { repository: APP_TARGET, hookId: null, findings: [appRefusal(asked.error)] };
  const sent = await recentAppDeliveries(ctx.upstream);
  const taken = (sent ?? []).filter(({ status }) => status === "OK").map(({ guid }) => guid);
  const findings = diagnoseApp({ ...asked.found, address, sent, arrived: await arrivedFrom(ctx, null, taken) });
  return { repository: APP_TARGET, hookId: null, findings };
}

/** How one repository's hook is, by what upstream and the inbox say. @throws what upstream throws when it cannot be asked */
export async function checkHook(ctx: Context, repository: string, address: string): Promise<Checked> {
  const asked = await orRefusal(() => listRepositoryHooks(ctx.upstream, repository));
  if ("refusal" in asked) return { repository, hookId: null, findings: [permissionFinding(asked.refusal)] };
  const hook = asked.found.find(({ url }) => url === address) ?? null;
  const sent = hook && (await recentDeliveries(ctx.upstream, hook));
  const taken = (sent ?? []).filter(({ status }) => status === "OK").map(({ guid }) => guid);
  const arrived = hook ? await arrivedFrom(ctx, hook.id, taken) : [];
  const findings = diagnose({ fullName: repository, address, hook, wantedEvents: followedEvents, sent, arrived });
  return { repository, hookId: hook?.id ?? null, findings };
}

async function runCheck({ words, env }: Given, output: Output): Promise<number> {
  const names = readTargets(words);
  await using resources = new AsyncDisposableStack();
  const opened = await openInstance(env, resources);
  const address = await needAddress(opened);
  const checked: Checked[] = [];
  for (const repository of await hookTargets(opened.ctx, names)) {
    const one =
      repository === APP_TARGET
        ? await checkAppHook(opened.ctx, address)
        : await checkHook(opened.ctx, repository, address);
    checked.push(one);
    output.line(`${repository}: ${one.findings.length === 0 ? styled("green", "well") : ""}`.trim());
    for (const { level, says, todo } of one.findings)
      output.line(`  ${styled(level === "problem" ? "red" : "yellow", level)}: ${says}\n    ${todo}`);
  }
  output.document({ address, repositories: checked });
  if (checked.length === 0) output.line("Nothing is mirrored yet, so there are no hooks to check");
  return checked.some(({ findings }) => findings.some(({ level }) => level === "problem")) ? 1 : 0;
}

async function runRemove({ words, env }: Given, output: Output): Promise<number> {
  if (words.includes(APP_TARGET))
    throw new UsageError(
      "Upstream lets nobody remove an App's webhook by its API: switch it off on the App's page, under Webhook",
    );
  const names = readNames(words);
  if (names.length === 0) throw new UsageError("tain hooks remove needs to know of which repositories: owner/name");
  await using resources = new AsyncDisposableStack();
  const opened = await openInstance(env, resources);
  const { ctx } = opened;
  const address = await needAddress(opened);
  const removed: { repository: string; hookIds: number[]; problem: string | null }[] = [];
  for (const repository of await hookTargets(ctx, names)) {
    const asked = await orRefusal(async () => {
      const ours = (await listRepositoryHooks(ctx.upstream, repository)).filter(({ url }) => url === address);
      for (const hook of ours) await deleteRepositoryHook(ctx.upstream, hook);
      return ours.map(({ id }) => id);
    });
    removed.push(
      "refusal" in asked
        ? { repository, hookIds: [], problem: asked.refusal }
        : { repository, hookIds: asked.found, problem: null },
    );
  }
  output.document({ address, removed });
  for (const { repository, hookIds, problem } of removed)
    output.line(
      `${repository}: ${problem ?? (hookIds.length === 0 ? `there was no hook that sends to ${address}` : `hook ${hookIds.join(", ")} is deleted`)}`,
    );
  return removed.every(({ problem }) => problem === null) ? 0 : 1;
}

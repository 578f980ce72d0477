import type { Context } from "../../context.ts";
import { noteSubscription, placeSubscribed, wantedEvents } from "../../sync/following/hook-subscriptions.ts";
import { writeAppHook } from "../../upstream/hooks/app-hook.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { RETRIES } from "../../waits/retries.ts";
import { type Action, CommandError, type Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, spanOf, styled } from "../terminal/output.ts";
import { findMatches } from "../terminal/patterns.ts";
import { appRefusal, diagnoseApp, examineApp } from "./app-diagnosis.ts";
import { type HookFinding, hookProblem, permissionFinding } from "./diagnosis.ts";
import { APP_WORD, findHookNames, readHookNames } from "./hook-names.ts";
import { findHooked, ownSecret } from "./own-secret.ts";
import { type HookProof, proveAppHook, provePing } from "./proof.ts";
import { needAddress } from "./repository-hooks.ts";

export const register: Action = {
  name: "hooks register",
  summary: "make or mend our hooks, and prove by a ping that deliveries arrive",
  takes: "[app|owner/name…]",
  about: `
Makes the hook of each repository, or of all that are mirrored, be as it should: address, events,
secret, switched on. Of a GitHub App it is the App's own webhook (\`app\`) that serves all it is
installed on; the repositories' own are for what it does not cover. Then pings it and waits until the ping stands in the inbox, for ${spanOf(RETRIES.ping.withinMs)} at
most; what keeps it away is said in words. Exit code 1 when a hook is refused or no ping arrives.`,
  run: runRegister,
};

export interface Registered extends HookProof {
  /** `owner/name`, or `app`. */
  repository: string;
  hookId: number | null;
}

async function runRegister({ words, env, resources, within }: Given, output: Output): Promise<number> {
  const names = readHookNames(words);
  const opened = await openInstance(env, resources, within);
  const { ctx } = opened;
  const address = await needAddress(opened);
  const registered: Registered[] = [];
  const hooks = await findHookNames(ctx, names, mirrored);
  for (const repository of hooks) {
    const one = repository === APP_WORD ? await registerApp(ctx, address) : await registerOne(ctx, repository, address);
    registered.push(one);
    output.line(
      one.finding === null
        ? `${repository}: ${one.hookId === null ? "the App's webhook" : `hook ${one.hookId}`} is registered, and its ${styled("green", "ping arrived")}`
        : `${repository}: ${one.hookId === null ? "" : `hook ${one.hookId} is registered, but `}${styled("red", one.finding.says)}\n    ${one.finding.todo}`,
    );
  }
  output.document({ address, registered });
  if (registered.length === 0) output.line("Nothing is mirrored yet: `tain add owner/name` begins to");
  return registered.every(({ ping }) => ping === "arrived") ? 0 : 1;
}

/** @throws CommandError for a repository that is not mirrored: deliveries of its hook would only be ignored */
async function mirrored(ctx: Context, word: string): Promise<string> {
  const match = (await findMatches(ctx, word)).find(({ state }) => state !== "gone");
  if (!match) throw new CommandError(`${word} is not mirrored: \`tain add ${word}\` begins to. No hook was registered`);
  return match.fullName;
}

/** The App's webhook. Upstream has no ping for it, so its newest delivery is sent again instead. */
async function registerApp(ctx: Context, address: string): Promise<Registered> {
  const result = { repository: APP_WORD, hookId: null };
  try {
    await writeAppHook(ctx.upstream, { url: address, secret: await ownSecret(ctx, APP_WORD) });
    const [finding] = diagnoseApp({
      ...(await examineApp(ctx)),
      address,
      wantedEvents: await wantedEvents(ctx, null),
      sent: null,
      arrived: [],
    });
    if (finding?.level === "problem") return { ...result, ping: null, finding };
    return { ...result, ...(await proveAppHook(ctx, address)) };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { ...result, ping: null, finding: appRefusal(error) };
  }
}

async function registerOne(ctx: Context, repository: string, address: string): Promise<Registered> {
  try {
    const secret = await ownSecret(ctx, repository);
    const events = await wantedEvents(ctx, repository);
    const hook = await placeSubscribed(ctx, {
      repository: await findHooked(ctx, repository),
      url: address,
      secret,
      events,
    });
    const [match] = await findMatches(ctx, repository);
    if (match) await noteSubscription(ctx, { repositoryId: match.id, url: address, events });
    return { repository, hookId: hook.id, ...(await provePing(ctx, hook, { repository, address })) };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { repository, hookId: null, ping: null, finding: permissionOrRefusal(error) };
  }
}

function permissionOrRefusal({ status, message }: UpstreamRefusedError): HookFinding {
  if (status === 403 || status === 404) return permissionFinding(message);
  return hookProblem(
    "refused",
    message,
    "See that PUBLIC_URL is an address that upstream takes: public, http or https",
  );
}

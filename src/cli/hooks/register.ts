import { setTimeout as delay } from "node:timers/promises";
import type { Context } from "../../context.ts";
import { pingsFrom } from "../../inbox/deliveries.ts";
import { UpstreamRefusedError } from "../../upstream/client/errors.ts";
import { recentAppDeliveries, resendAppDelivery, writeAppHook } from "../../upstream/hooks/app-hook.ts";
import {
  pingRepositoryHook,
  placeRepositoryHook,
  recentDeliveries,
  type SentDelivery,
} from "../../upstream/hooks/hooks.ts";
import { type Command, CommandError, type Given } from "../command.ts";
import { appRefusal, diagnoseApp, examineApp, unprovenApp } from "../doctor/app-diagnosis.ts";
import { openInstance } from "../open-instance.ts";
import { type Output, spanOf, styled } from "../output.ts";
import { findMatches } from "../repositories/patterns.ts";
import { failureFinding, type HookFinding, permissionFinding } from "./diagnosis.ts";
import { followedEvents, needAddress } from "./repository-hooks.ts";
import { APP_TARGET, hookTargets, readTargets } from "./targets.ts";

/** Upstream gives up a delivery after ten seconds, and tells of it a moment later. */
const PING_WAIT_MS = 15_000;
const LOOK_MS = 200;
/** How often upstream is asked what came of a ping that is not there: a request each time. */
const ASK_MS = 3_000;

export const register: Command = {
  name: "hooks register",
  summary: "make or mend our hooks, and prove by a ping that deliveries arrive",
  takes: "[app|owner/name…]",
  about: `
Makes the hook of each repository, or of all that are mirrored, be as it should: address, events,
secret, switched on. Of a GitHub App it is the App's own webhook (\`app\`) that serves all it is
installed on; the repositories' own are for what it does not cover. Then pings it and waits until the ping stands in the inbox, for ${spanOf(PING_WAIT_MS)} at
most; what keeps it away is said in words. Exit code 1 when a hook is refused or no ping arrives.`,
  run: runRegister,
};

export interface Registered {
  /** `owner/name`, or `app`. */
  repository: string;
  hookId: number | null;
  ping: "arrived" | "failed" | "not seen" | null;
  finding: HookFinding | null;
}

async function runRegister({ words, env }: Given, output: Output): Promise<number> {
  const names = readTargets(words);
  await using resources = new AsyncDisposableStack();
  const opened = await openInstance(env, resources);
  const { ctx } = opened;
  const address = await needAddress(opened);
  const registered: Registered[] = [];
  const targets = await hookTargets(ctx, names, mirrored);
  for (const repository of targets) {
    const one =
      repository === APP_TARGET ? await registerApp(ctx, address) : await registerOne(ctx, repository, address);
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

/** @throws CommandError for one that is not: a hook without a mirror would only be ignored */
async function mirrored(ctx: Context, word: string): Promise<string> {
  const match = (await findMatches(ctx, word)).find(({ state }) => state !== "gone");
  if (!match) throw new CommandError(`${word} is not mirrored: \`tain add ${word}\` begins to. No hook was registered`);
  return match.fullName;
}

/** The App's webhook. Upstream has no ping for it, so its newest delivery is sent again instead. */
async function registerApp(ctx: Context, address: string): Promise<Registered> {
  const result = { repository: APP_TARGET, hookId: null };
  try {
    await writeAppHook(ctx.upstream, { url: address, secret: ctx.config.webhookSecrets[0] ?? "" });
    const [finding] = diagnoseApp({ ...(await examineApp(ctx)), address, sent: null, arrived: [] });
    if (finding?.level === "problem") return { ...result, ping: null, finding };
    return { ...result, ...(await proveAppHook(ctx, address)) };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { ...result, ping: null, finding: appRefusal(error) };
  }
}

/** Has the App's newest delivery sent again, and waits for what comes of it. */
export async function proveAppHook(ctx: Context, address: string): Promise<Pick<Registered, "ping" | "finding">> {
  const before = (await recentAppDeliveries(ctx.upstream)) ?? [];
  const newest = before.find(({ event }) => event === "ping") ?? before[0];
  if (!newest) return { ping: null, finding: unprovenApp };
  const known = new Set(before.map(({ id }) => id));
  const attempt = async () =>
    ((await recentAppDeliveries(ctx.upstream)) ?? []).find(({ id, guid }) => guid === newest.guid && !known.has(id));
  await resendAppDelivery(ctx.upstream, newest);
  let last: SentDelivery | undefined;
  const proof = await waitForProof({
    // Here it may stand since long, so upstream has to say what came of this attempt.
    arrived: async () => {
      last = await attempt();
      return last?.status === "OK";
    },
    failed: async () => (last?.status === "OK" ? undefined : last),
  });
  if (proof === "arrived") return { ping: "arrived", finding: null };
  if (proof !== "not seen") return { ping: "failed", finding: failureFinding(proof, address, APP_TARGET) };
  return { ping: "not seen", finding: notSeen(address, APP_TARGET) };
}

async function registerOne(ctx: Context, repository: string, address: string): Promise<Registered> {
  const secret = ctx.config.webhookSecrets[0] ?? "";
  try {
    const hook = await placeRepositoryHook(ctx.upstream, {
      fullName: repository,
      url: address,
      secret,
      events: followedEvents,
    });
    return { repository, hookId: hook.id, ...(await provePing(ctx, hook, { repository, address })) };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { repository, hookId: null, ping: null, finding: permissionOrRefusal(error) };
  }
}

function permissionOrRefusal({ status, message }: UpstreamRefusedError): HookFinding {
  if (status === 403 || status === 404) return permissionFinding(message);
  return {
    level: "problem",
    kind: "refused",
    says: message,
    todo: "See that PUBLIC_URL is an address that upstream takes: public, http or https",
  };
}

/** Pings the hook, and waits until the inbox has the ping or upstream says that it failed. */
export async function provePing(
  ctx: Context,
  hook: { id: number; path: string },
  { repository, address }: { repository: string; address: string },
): Promise<Pick<Registered, "ping" | "finding">> {
  const here = await pingsFrom(ctx, hook.id);
  const there = (await recentDeliveries(ctx.upstream, hook))?.map(({ guid }) => guid) ?? [];
  await pingRepositoryHook(ctx.upstream, hook);
  const proof = await waitForProof({
    arrived: async () => (await pingsFrom(ctx, hook.id)).some((guid) => !here.includes(guid)),
    failed: async () =>
      ((await recentDeliveries(ctx.upstream, hook)) ?? []).find(
        ({ guid, event, status }) => event === "ping" && status !== "OK" && !there.includes(guid),
      ),
  });
  if (proof === "arrived") return { ping: "arrived", finding: null };
  if (proof !== "not seen") return { ping: "failed", finding: failureFinding(proof, address, repository) };
  return { ping: "not seen", finding: notSeen(address, repository) };
}

function notSeen(address: string, target: string): HookFinding {
  return {
    level: "problem",
    kind: "elsewhere",
    says: `no ping has come into the inbox of this database within ${spanOf(PING_WAIT_MS)}`,
    todo: `See that ${address} leads to receivers that use this DATABASE_URL; \`tain hooks check ${target}\` says what upstream knows by then`,
  };
}

/** Waits until a delivery has arrived here, or upstream says that it failed, or neither in the time that one takes. */
async function waitForProof(watched: {
  arrived: () => Promise<boolean>;
  failed: () => Promise<SentDelivery | undefined>;
}): Promise<"arrived" | "not seen" | SentDelivery> {
  const end = performance.now() + PING_WAIT_MS;
  for (let askAt = performance.now() + ASK_MS; performance.now() < end; ) {
    if (await watched.arrived()) return "arrived";
    if (performance.now() >= askAt) {
      const failed = await watched.failed();
      if (failed) return failed;
      askAt = performance.now() + ASK_MS;
    }
    // The receiver is another process: it tells by the inbox alone.
    await delay(LOOK_MS);
  }
  return "not seen";
}

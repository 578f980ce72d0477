import { setTimeout as delay } from "node:timers/promises";
import type { Context } from "../context.ts";
import { pingsFrom } from "../receiver/deliveries.ts";
import { UpstreamRefusedError } from "../upstream/errors.ts";
import { pingRepositoryHook, placeRepositoryHook, recentDeliveries } from "../upstream/hooks.ts";
import { type Command, CommandError, type Given } from "./command.ts";
import { failureFinding, type HookFinding, permissionFinding } from "./hook-diagnosis.ts";
import { openInstance } from "./open-instance.ts";
import { type Output, spanOf, styled } from "./output.ts";
import { findMatches, readNames } from "./patterns.ts";
import { findMirroredNames, followedEvents, needAddress } from "./repository-hooks.ts";

/** Upstream gives up a delivery after ten seconds, and tells of it a moment later. */
const PING_WAIT_MS = 15_000;
const LOOK_MS = 200;
/** How often upstream is asked what came of a ping that is not there: a request each time. */
const ASK_MS = 3_000;

export const register: Command = {
  name: "hooks register",
  summary: "make or mend our hooks, and prove by a ping that deliveries arrive",
  takes: "[owner/name…]",
  about: `
Makes the hook of each repository, or of all that are mirrored, be as it should: address, events,
secret, switched on. Then pings it and waits until the ping stands in the inbox, for ${spanOf(PING_WAIT_MS)} at
most; what keeps it away is said in words. Exit code 1 when a hook is refused or no ping arrives.`,
  run: runRegister,
};

interface Registered {
  repository: string;
  hookId: number | null;
  ping: "arrived" | "failed" | "not seen" | null;
  finding: HookFinding | null;
}

async function runRegister({ words, env }: Given, output: Output): Promise<number> {
  const names = readNames(words);
  await using resources = new AsyncDisposableStack();
  const opened = await openInstance(env, resources);
  const { ctx } = opened;
  const address = await needAddress(opened);
  const registered: Registered[] = [];
  for (const repository of await mirrored(ctx, names)) {
    const one = await registerOne(ctx, repository, address);
    registered.push(one);
    output.line(
      one.finding === null
        ? `${repository}: hook ${one.hookId} is registered, and its ${styled("green", "ping arrived")}`
        : `${repository}: ${one.hookId === null ? "" : `hook ${one.hookId} is registered, but `}${styled("red", one.finding.says)}\n    ${one.finding.todo}`,
    );
  }
  output.document({ address, registered });
  if (registered.length === 0) output.line("Nothing is mirrored yet: `tain add owner/name` begins to");
  return registered.every(({ ping }) => ping === "arrived") ? 0 : 1;
}

/** @throws CommandError for one that is not: a hook without a mirror would only be ignored */
async function mirrored(ctx: Context, words: readonly string[]): Promise<string[]> {
  if (words.length === 0) return (await findMirroredNames(ctx)).map(({ owner, name }) => `${owner}/${name}`);
  const names: string[] = [];
  for (const word of words) {
    const match = (await findMatches(ctx, word)).find(({ state }) => state !== "gone");
    if (!match)
      throw new CommandError(`${word} is not mirrored: \`tain add ${word}\` begins to. No hook was registered`);
    names.push(match.fullName);
  }
  return names;
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
async function provePing(
  ctx: Context,
  hook: { id: number; path: string },
  { repository, address }: { repository: string; address: string },
): Promise<Pick<Registered, "ping" | "finding">> {
  const here = await pingsFrom(ctx, hook.id);
  const there = (await recentDeliveries(ctx.upstream, hook))?.map(({ guid }) => guid) ?? [];
  await pingRepositoryHook(ctx.upstream, hook);

  const end = performance.now() + PING_WAIT_MS;
  for (let askAt = performance.now() + ASK_MS; performance.now() < end; ) {
    const now = await pingsFrom(ctx, hook.id);
    if (now.some((guid) => !here.includes(guid))) return { ping: "arrived", finding: null };
    if (performance.now() >= askAt) {
      const sent = (await recentDeliveries(ctx.upstream, hook)) ?? [];
      const failed = sent.find(
        ({ guid, event, status }) => event === "ping" && status !== "OK" && !there.includes(guid),
      );
      if (failed) return { ping: "failed", finding: failureFinding(failed, address, repository) };
      askAt = performance.now() + ASK_MS;
    }
    // The receiver is another process: it tells by the inbox alone.
    await delay(LOOK_MS);
  }
  return {
    ping: "not seen",
    finding: {
      level: "problem",
      kind: "elsewhere",
      says: `no ping has come into the inbox of this database within ${spanOf(PING_WAIT_MS)}`,
      todo: `See that ${address} leads to receivers that use this DATABASE_URL; \`tain hooks check ${repository}\` says what upstream knows by then`,
    },
  };
}

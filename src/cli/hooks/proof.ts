import type { Context } from "../../context.ts";
import { pingsFrom } from "../../inbox/arrivals.ts";
import { APP_DELIVERIES } from "../../upstream/hooks/app-hook.ts";
import { askToResend, pingRepositoryHook, recentDeliveries, type SentDelivery } from "../../upstream/hooks/hooks.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { spanOf } from "../terminal/output.ts";
import { UNPROVEN_APP } from "./app-diagnosis.ts";
import { failureFinding, type HookFinding, hookProblem } from "./diagnosis.ts";
import { APP_WORD } from "./hook-names.ts";

/** How often upstream is asked for the outcome of a ping that has not arrived. Each time costs a request. */
const PING_ASKED_MS = 3_000;
/** When upstream is asked for the first time. It knows at once if the receiver refused the ping, or nobody listens. */
const FIRST_ASK_MS = 600;

/** The outcome of a ping. */
export interface HookProof {
  /** null: none was sent. */
  ping: "arrived" | "failed" | "not seen" | null;
  /** What is wrong, if anything is. */
  finding: HookFinding | null;
}

/** Pings the hook, and waits until the inbox has the ping or upstream says that it failed. */
export async function provePing(
  ctx: Context,
  hook: { id: number; path: string },
  { repository, address }: { repository: string; address: string },
): Promise<HookProof> {
  const here = await pingsFrom(ctx, hook.id);
  const there = (await recentDeliveries(ctx.upstream, `${hook.path}/deliveries`))?.map(({ guid }) => guid) ?? [];
  await pingRepositoryHook(ctx.upstream, hook);
  const proof = await waitForProof(ctx, {
    arrived: async () => (await pingsFrom(ctx, hook.id)).some((guid) => !here.includes(guid)),
    failed: async () =>
      ((await recentDeliveries(ctx.upstream, `${hook.path}/deliveries`)) ?? []).find(
        ({ guid, event, status }) => event === "ping" && status !== "OK" && !there.includes(guid),
      ),
  });
  if (proof === "arrived") return { ping: "arrived", finding: null };
  if (proof !== "not seen") return { ping: "failed", finding: failureFinding(proof, address, repository) };
  return { ping: "not seen", finding: notSeen(address, repository) };
}

/** Has the App's newest delivery sent again, and waits for the outcome. */
export async function proveAppHook(ctx: Context, address: string): Promise<HookProof> {
  const before = (await recentDeliveries(ctx.upstream, APP_DELIVERIES)) ?? [];
  const newest = before.find(({ event }) => event === "ping") ?? before[0];
  if (!newest) return { ping: null, finding: UNPROVEN_APP };
  const known = new Set(before.map(({ id }) => id));
  const attempt = async () =>
    ((await recentDeliveries(ctx.upstream, APP_DELIVERIES)) ?? []).find(
      ({ id, guid }) => guid === newest.guid && !known.has(id),
    );
  await askToResend(ctx.upstream, APP_DELIVERIES, newest);
  let last: SentDelivery | undefined;
  const proof = await waitForProof(ctx, {
    // The inbox may have had this delivery for long, so only upstream can say whether this attempt arrived.
    arrived: async () => {
      last = await attempt();
      return last?.status === "OK";
    },
    failed: async () => (last?.status === "OK" ? undefined : last),
  });
  if (proof === "arrived") return { ping: "arrived", finding: null };
  if (proof !== "not seen") return { ping: "failed", finding: failureFinding(proof, address, APP_WORD) };
  return { ping: "not seen", finding: notSeen(address, APP_WORD) };
}

function notSeen(address: string, name: string): HookFinding {
  const says = `no ping has come into the inbox of this database within ${spanOf(RETRIES.ping.withinMs)}`;
  const todo = `See that ${address} leads to receivers that use this DATABASE_URL; \`tain hooks check ${name}\` says what upstream knows by then`;
  return hookProblem("elsewhere", says, todo);
}

/**
 * Waits until the delivery has arrived here, or upstream says that it failed. "not seen": neither, within the time that
 * a delivery takes.
 */
async function waitForProof(
  { random }: Pick<Context, "random">,
  watched: { arrived: () => Promise<boolean>; failed: () => Promise<SentDelivery | undefined> },
): Promise<"arrived" | "not seen" | SentDelivery> {
  // The receiver is another process. Only the inbox shows whether a delivery has arrived.
  const waits = new Waits({ policy: RETRIES.ping, random });
  let askAt = performance.now() + FIRST_ASK_MS;
  do {
    if (await watched.arrived()) return "arrived";
    if (performance.now() >= askAt) {
      const failed = await watched.failed();
      if (failed) return failed;
      askAt = performance.now() + PING_ASKED_MS;
    }
  } while (await waits.next());
  return "not seen";
}

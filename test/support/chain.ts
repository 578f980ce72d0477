import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { registerHook } from "../../src/cli/hooks/repository-hooks.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import type { Context } from "../../src/context.ts";
import { wakeDue } from "../../src/events/log.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { scheduleCatchUps } from "../../src/sync/catch-up/catch-up.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { fetchAndStoreViewer } from "../../src/sync/following/viewer.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { markWholesDue } from "./due.ts";
import { openMirror, type TestMirror, type TestMirrorOptions } from "./mirror.ts";
import { eventually } from "./patience.ts";
import { mirrorAll, type TestWorld, untilIdle } from "./world.ts";

/** A mirror of a mirror. */
export interface Follower extends TestMirror {
  /** The token that the follower shows its upstream. */
  upstreamToken: string;
  /** A token of the follower's own, for callers. */
  token: string;
}

/** Targets may lead to this machine, and everything that can be mirrored is. */
export const OF_CHAIN = { TARGETS_ALLOWED: "127.0.0.1", MIRROR: MIRROR_PARTS.join() };

/** Makes a token of this mirror for a mirror of it to show. */
export async function tokenOfFollower({ ctx }: Pick<TestMirror, "ctx">, hourlyLimit?: number): Promise<string> {
  return await createApiToken(ctx, {
    userId: await fetchAndStoreViewer(ctx),
    canWrite: true,
    permissions: [
      "issues:write",
      "pull_requests:write",
      "checks:read",
      "statuses:read",
      "contents:read",
      "deployments:read",
      "actions:read",
      "hooks:write",
    ],
    hourlyLimit: hourlyLimit ?? null,
  });
}

/** Opens a mirror of one repository. It registers its hook at its upstream, as a mirror's own processes do. */
export async function openFollower(
  { url, token, fullName }: { url: string; token: string; fullName: string },
  options: TestMirrorOptions = {},
): Promise<Follower> {
  await using opening = new AsyncDisposableStack();
  const env = { ...OF_CHAIN, UPSTREAM_TOKEN: token, ...options.env };
  const mirror = opening.use(await openMirror({ workers: true, ...options, upstream: url, env }));
  await follow(mirror, fullName);
  const own = await createApiToken(mirror.ctx, { userId: await fetchAndStoreViewer(mirror.ctx), canWrite: true });
  const all = opening.move();
  return { ...mirror, upstreamToken: token, token: own, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Mirrors a repository, and registers the hook. */
export async function follow({ ctx, url }: Pick<TestMirror, "ctx" | "url">, fullName: string): Promise<void> {
  await fetchAndStoreViewer(ctx);
  await mirrorAll(ctx, [fullName]);
  const [owner = "", name = ""] = fullName.split("/");
  const [row] = await ctx.db.query<{ id: number }>(
    sql`select id::float8 as id from repositories where full_name = ${fullName}`,
  );
  const refusal = row && (await registerHook(ctx, { id: row.id, owner, name }, `${url}/webhooks`));
  if (refusal !== null) throw new Error(`No hook: ${refusal ?? `${fullName} is not mirrored`}`);
}

/** Waits until the root's webhooks are sent, and until their effects have reached the last of the mirrors. */
export async function settleChain(simulator: TestWorld["simulator"], mirrors: readonly TestMirror[]): Promise<void> {
  await simulator.quiet();
  for (const { ctx } of mirrors) {
    await wakeDue(ctx);
    await untilIdle(ctx);
  }
}

/** Moves all clocks a minute on, and does what each scheduler would do. */
export async function passMinute(simulator: TestWorld["simulator"], mirrors: readonly TestMirror[]): Promise<void> {
  // No type says that a simulator's clock is one that a test may set.
  (simulator.world.clock as SettableClock).advance(60_000);
  for (const { advance } of mirrors) advance(60_000);
  // By the real clock these jobs are not due yet. A job that a worker is just taking stays.
  await Promise.all(mirrors.map(({ ctx }) => ctx.queues.refresh.clean(0, 1_000_000, "delayed")));
  await Promise.all(mirrors.map(({ ctx }) => doWhatIsDue(ctx)));
  await settleChain(simulator, mirrors);
}

/** Asks for all work that a scheduler would ask for now. */
export async function doWhatIsDue(ctx: Context): Promise<void> {
  await wakeDue(ctx);
  await markWholesDue(ctx);
  await dispatchMarks(ctx);
  // Works as a job that is tried again. On a busy machine Redis may be late to say what is left of the quota.
  await eventually(() => sweep(ctx));
  await scheduleCatchUps(ctx);
}

import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { keyIn, observe } from "../../mirror/store/observation.ts";

/**
 * The user whose token mirrors upstream; `/user` answers as them to our own callers. With an App alone it is the
 * account that owns the App. Answers the user's id.
 */
export async function fetchAndStoreViewer(ctx: Context): Promise<number> {
  const isApp = ctx.config.upstreamTokens.length === 0;
  const answer = await ctx.upstream.get(isApp ? "/app" : "/user", { priority: "caller" });
  if (answer.kind !== "ok") throw new Error("Upstream does not say whose token UPSTREAM_TOKEN is");
  const user = isApp ? (objectOf(answer.body).owner ?? null) : answer.body;
  await ctx.db.transaction((tx) =>
    mergeObserved(tx, observe("user", user, { api: ctx.config.upstreamUrl, seenAt: answer.seenAt, read: true })),
  );
  return keyIn("user", user);
}

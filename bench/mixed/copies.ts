import type { Context } from "../../src/context.ts";
import { enqueueBackfill } from "../../src/queues/queues.ts";
import { restartBackfill } from "../../src/sync/backfill/backfill.ts";
import { HOOK_EVENTS } from "../../src/sync/events/followed.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { findId, placeRepositoryHook } from "../../src/upstream/hooks/hooks.ts";
import { waitFor } from "../history.ts";

export interface Copying {
  ctx: Context;
  /** Of the receiver. */
  webhooks: string;
  /** Answers what a repository is called at this moment, `owner/name`. */
  nameOf: (id: number) => Promise<string>;
  /** Of repositories that are not mirrored yet. */
  ids: readonly number[];
  signal: AbortSignal;
}

export interface Copied {
  first: number;
  again: number;
}

/**
 * Adds one repository after the other, each when the one before is copied, and copies them once more when all have
 * been.
 */
export async function copyOn({ ctx, webhooks, ids, nameOf, signal }: Copying): Promise<Copied> {
  const copied: Copied = { first: 0, again: 0 };
  for (const id of ids) {
    if (signal.aborted) return copied;
    await mirrorOne(ctx, webhooks, await nameOf(id));
    await untilCopied(ctx);
    copied.first += 1;
  }
  for (let at = 0; !signal.aborted; at = (at + 1) % ids.length) {
    const repositoryId = ids[at] as number;
    await restartBackfill(ctx, repositoryId);
    await enqueueBackfill(ctx, { repositoryId });
    await untilCopied(ctx);
    copied.again += 1;
  }
  return copied;
}

/** As `tain add` and `tain hooks register` do. */
export async function mirrorOne(ctx: Context, webhooks: string, fullName: string): Promise<void> {
  await addSelections(ctx, [fullName]);
  await resolveSelections(ctx);
  const secret = ctx.config.webhookSecrets[0] as string;
  await placeRepositoryHook(ctx.upstream, {
    repository: { id: await findId(ctx.upstream, `/repos/${fullName}`), fullName },
    url: webhooks,
    secret,
    events: HOOK_EVENTS,
  });
}

/** Waits until no repository is being copied. */
export async function untilCopied(ctx: Context): Promise<void> {
  await waitFor(ctx, "select count(*)::int as left from repository_syncs where state = 'backfilling'");
}

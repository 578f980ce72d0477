import { ApiTokens } from "../../api/callers/caller.ts";
import { writesAll } from "../../api/callers/permissions.ts";
import { createApiToken } from "../../api/callers/tokens.ts";
import { instanceFile } from "../../config.ts";
import type { Context } from "../../context.ts";
import { isMistake, rootReasonOf, wholeReasonOf } from "../../failure.ts";
import { loadStatus, type RepositoryStatus } from "../../health/status.ts";
import { addSelections, resolveSelections } from "../../sync/following/selection.ts";
import { fetchAndStoreViewer } from "../../sync/following/viewer.ts";
import { CredentialRejectedError, isUnanswered } from "../../upstream/protocol/errors.ts";
import { repeated } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { followBackfills } from "../repositories/follow-backfills.ts";
import { readInstance } from "../terminal/instance.ts";
import { enliven } from "./demonstration.ts";
import { copied, greeting } from "./greeting.ts";
import { Keeper, type Tending } from "./keeper.ts";

/**
 * Sees to what an instance needs beside its processes: a token, selections, webhooks, its file. Prints the
 * greeting and the progress of the first copies, and keeps the webhooks and the file up to date until the signal aborts.
 */
export async function tend(ctx: Context, tending: Tending): Promise<void> {
  const { demonstration } = tending;
  const keeper = await openKeeper(ctx, tending);
  const kept = keeper.keep();

  const { instance, webhookUrl } = keeper;
  const file = instanceFile(ctx.config);
  // The secrets are only in the file, because output may be collected.
  tending.output.line(
    greeting({ instance, file, hasSimulator: demonstration !== null, isReached: webhookUrl !== null }),
  );
  try {
    await showBackfills(ctx, keeper, tending);
  } catch (error) {
    // A greeting that fails must not end the instance: its processes live through an outage.
    ctx.log.warn({ reason: rootReasonOf(error) }, "The progress of the copies cannot be shown");
  }
  await kept;
}

/**
 * The same for a process that was started again: it has greeted already, and waits until the stores are there.
 */
export async function tendAgain(ctx: Context, tending: Tending): Promise<void> {
  const keeper = await repeated(() => openKeeper(ctx, tending), {
    policy: RETRIES.viewer,
    signal: tending.signal,
    random: ctx.random,
    isPassing: (error) => !isMistake(error),
    onWait: (error) =>
      ctx.log.warn({ reason: rootReasonOf(error) }, "Webhooks and instance.json cannot be looked after yet"),
  });
  await keeper.keep();
}

/** The instance's token, selections, webhooks and file, as they have to be when it begins. */
async function openKeeper(ctx: Context, tending: Tending): Promise<Keeper> {
  const { demonstration } = tending;
  const { token, isAnswered } = await settleToken(ctx, tending);
  if (demonstration) await addSelections(ctx, demonstration.repositories);
  // If upstream is away, the scheduler resolves the selections later.
  if (isAnswered) await askOrNote(tending, () => resolveSelections(ctx));

  const keeper = new Keeper(ctx, tending, token);
  await askOrNote(tending, () => keeper.look());
  // The world changes only from now on, since webhooks are registered by now.
  if (demonstration) await enliven(demonstration);
  return keeper;
}

/** Shows the progress of the backfills, and at their end what the mirror holds. */
async function showBackfills(ctx: Context, keeper: Keeper, { output, signal, apiUrl }: Tending): Promise<void> {
  if ((await followed(ctx)).some(({ state }) => state === "backfilling"))
    await followBackfills(ctx, output, { concerns: ({ state }) => state !== "gone", view: "line", signal });
  if (signal.aborted) return;
  const repositories = await followed(ctx);
  const { webhookUrl, upstreamUrl } = keeper.instance;
  output.document({
    event: "up",
    instanceFile: instanceFile(ctx.config),
    apiUrl,
    webhookUrl,
    upstreamUrl,
    repositories,
  });
  output.line(copied(repositories));
}

async function followed(ctx: Context): Promise<RepositoryStatus[]> {
  return (await loadStatus(ctx, async () => [])).repositories.filter(({ state }) => state !== "gone");
}

/** The token of the last start, if it still answers as upstream's user; otherwise a new one. */
async function settleToken(ctx: Context, tending: Tending): Promise<{ token: string; isAnswered: boolean }> {
  const last = (await readInstance(ctx.config))?.token;
  const tokens = new ApiTokens(ctx);
  const found = last === undefined ? null : await tokens.find(last).finally(() => tokens.close());
  if (last === undefined || !found || !writesAll(found.kinds)) {
    // Upstream must be asked until it answers: an instance needs an API token to give out. The token belongs to
    // upstream's user, whom only upstream can name.
    const userId = await askUntilAnswered(ctx, tending, () => fetchAndStoreViewer(ctx));
    return { token: await createApiToken(ctx, { userId, canWrite: true }), isAnswered: true };
  }
  const userId = await askOrNote(tending, () => fetchAndStoreViewer(ctx));
  if (userId === null || userId === found.userId) return { token: last, isAnswered: userId !== null };
  return { token: await createApiToken(ctx, { userId, canWrite: true }), isAnswered: true };
}

/** Asks upstream once. If upstream does not answer the question, prints why and returns null. */
async function askOrNote<T>({ output }: Pick<Tending, "output">, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (!isUnanswered(error)) throw error;
    output.note(`tain: ${wholeReasonOf(error)}; serving what is mirrored`);
    return null;
  }
}

/**
 * Asks upstream until it answers, and prints a line while it is away. @throws CredentialRejectedError, and any error
 * that is not an outage of upstream
 */
async function askUntilAnswered<T>(
  ctx: Pick<Context, "random">,
  { output, signal }: Tending,
  ask: () => Promise<T>,
): Promise<T> {
  return await repeated(ask, {
    policy: RETRIES.viewer,
    signal,
    random: ctx.random,
    // An operator has to mend the credential first.
    isPassing: (error) => isUnanswered(error) && !(error instanceof CredentialRejectedError),
    onWait: (error, waitMs) =>
      output.note(`tain: ${wholeReasonOf(error)}; trying again in ${Math.ceil(waitMs / 1_000)} s`),
  });
}

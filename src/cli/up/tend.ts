import { setTimeout as delay } from "node:timers/promises";
import { ApiTokens, createApiToken } from "../../api/callers/tokens.ts";
import { instanceFile } from "../../config.ts";
import type { Context } from "../../context.ts";
import { loadStatus, type RepositoryStatus } from "../../health/status.ts";
import { addSelections, readViewer, resolveSelections } from "../../sync/following/selection.ts";
import { CredentialRejectedError, QuotaSpentError, UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import { findMirroredNames, registerHook } from "../hooks/repository-hooks.ts";
import { type Instance, readInstance, writeInstance } from "../instance.ts";
import { counted, type Output } from "../output.ts";
import { followBackfills } from "../repositories/follow-backfills.ts";
import { type Demonstration, enliven } from "./demonstration.ts";
import { greeting } from "./greeting.ts";

export interface Tending {
  output: Output;
  signal: AbortSignal;
  apiUrl: string;
  demonstration: Demonstration | null;
}

/** A repository found meanwhile, by `owner/*` or `tain add`, has its webhook within this time. */
const UPKEEP_MS = 15_000;
/** A refused webhook is tried again after this time: a person has to change a permission first. */
const REFUSED_HOOK_MS = 10 * 60_000;
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 60_000;

/**
 * Everything that an instance needs beside its processes: a token, its wishes, its webhooks, its file; then a word to the
 * person who started it. Goes on until the signal aborts.
 */
export async function tend(ctx: Context, tending: Tending): Promise<void> {
  const { demonstration } = tending;
  const { token, isAnswered } = await settleToken(ctx, tending);
  if (demonstration) await addSelections(ctx, demonstration.repositories);
  // While upstream is away the scheduler goes on asking for what is wished.
  if (isAnswered) await insist(tending, () => resolveSelections(ctx), { once: true });

  const keeper = new Keeper(ctx, tending, token);
  await insist(tending, () => keeper.look(), { once: true });
  // Only now, when changes can be followed.
  if (demonstration) await enliven(demonstration);
  const kept = keeper.keep();

  try {
    await tell(ctx, keeper, tending);
  } catch (error) {
    // What we show to a person is not worth the instance: its processes know how to live through an outage.
    ctx.log.warn({ reason: (error as Error).message }, "How the copying comes along cannot be shown");
  }
  await kept;
}

/** How the first copies come along, and at their end where everything is. */
async function tell(ctx: Context, keeper: Keeper, { output, signal, apiUrl, demonstration }: Tending): Promise<void> {
  const before = await followed(ctx);
  if (before.some(({ state }) => state === "backfilling")) {
    output.line(
      `Copying ${counted(before.length, "repository", "repositories")}; what is there already is served at ${apiUrl}`,
    );
    await followBackfills(ctx, output, { concerns: ({ state }) => state !== "gone", signal });
  }
  if (signal.aborted) return;
  const repositories = await followed(ctx);
  const file = instanceFile(ctx.config);
  const { instance } = keeper;
  output.document({ event: "up", instanceFile: file, ...instance, repositories });
  output.line(
    greeting({
      instance,
      file,
      repositories,
      hasSimulator: demonstration !== null,
      isReached: keeper.webhookUrl !== null,
    }),
  );
}

async function followed(ctx: Context): Promise<RepositoryStatus[]> {
  return (await loadStatus(ctx, async () => [])).repositories.filter(({ state }) => state !== "gone");
}

/** The token of the last start, if it still answers as upstream's user; otherwise a new one. */
async function settleToken(ctx: Context, tending: Tending): Promise<{ token: string; isAnswered: boolean }> {
  const last = (await readInstance(ctx.config))?.token;
  const tokens = new ApiTokens(ctx);
  const found = last === undefined ? null : await tokens.find(last).finally(() => tokens.close());
  const known = found?.canWrite ? found : null;
  // With a token to give out we can serve without upstream; without one there is nobody to answer as yet.
  const viewerId = await insist(tending, () => readViewer(ctx), { once: known !== null });
  const isAnswered = viewerId !== null;
  if (last !== undefined && known && (!isAnswered || viewerId === known.userId)) return { token: last, isAnswered };
  return { token: await createApiToken(ctx, { userId: viewerId as number, canWrite: true }), isAnswered };
}

/**
 * Asks upstream until it answers, and says so when it does not. `once`: one attempt, null when upstream is away.
 * @throws CredentialRejectedError unless `once`, and whatever has nothing to do with upstream being away
 */
async function insist<T>({ output, signal }: Tending, ask: () => Promise<T>, { once = false } = {}): Promise<T | null> {
  for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(MAX_RETRY_MS, waitMs * 2)) {
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error) || (error instanceof CredentialRejectedError && !once)) throw error;
      output.note(
        `tain: ${error.message}; ${once ? "serving what is mirrored" : `trying again in ${waitMs / 1_000} s`}`,
      );
      if (once) return null;
      await delay(waitMs, undefined, { signal });
    }
  }
}

function isAway(error: unknown): error is Error {
  return (
    error instanceof UpstreamUnavailableError ||
    error instanceof QuotaSpentError ||
    error instanceof CredentialRejectedError
  );
}

/** Keeps the webhooks and the instance's file as the mirrored repositories are. */
class Keeper {
  readonly #ctx: Context;
  readonly #tending: Tending;
  /** By repository's id: when to look at its webhook again; Infinity once it is registered. */
  readonly #hooks = new Map<number, number>();
  /** Where upstream is to send its deliveries; null where it could not reach us. */
  readonly webhookUrl: string | null;
  instance: Instance;
  #written = "";

  constructor(ctx: Context, tending: Tending, token: string) {
    this.#ctx = ctx;
    this.#tending = tending;
    const { upstreamUrl, upstreamTokens, webhookSecrets, publicUrl } = ctx.config;
    const { apiUrl, demonstration } = tending;
    // The simulator reaches us here; the real service only by a public address.
    const webhookUrl = `${demonstration ? apiUrl : (publicUrl ?? apiUrl)}/webhooks`;
    this.webhookUrl = demonstration || publicUrl ? webhookUrl : null;
    const [webhookSecret = ""] = webhookSecrets;
    const [upstreamToken = ""] = upstreamTokens;
    this.instance = { apiUrl, token, webhookUrl, webhookSecret, upstreamUrl, upstreamToken, repositories: [] };
  }

  /** Looks once: registers what is missing, writes the file if it has changed. */
  async look(): Promise<void> {
    const names = await findMirroredNames(this.#ctx);
    this.instance = { ...this.instance, repositories: names.map(({ owner, name }) => ({ owner, name })) };
    const text = JSON.stringify(this.instance);
    if (text !== this.#written) await writeInstance(this.#ctx.config, this.instance);
    this.#written = text;
    if (this.webhookUrl === null) return;
    for (const name of names) {
      if (this.#tending.signal.aborted) return;
      if ((this.#hooks.get(name.id) ?? 0) > Date.now()) continue;
      const refusal = await registerHook(this.#ctx, name, this.webhookUrl);
      this.#hooks.set(name.id, refusal === null ? Number.POSITIVE_INFINITY : Date.now() + REFUSED_HOOK_MS);
      if (refusal !== null) {
        this.#tending.output.note(
          `tain: no webhook for ${name.owner}/${name.name}: ${refusal}. Its changes are found by catch-up`,
        );
      }
    }
  }

  /** Looks again and again, until the signal aborts. What is away now may be there at the next look. */
  async keep(): Promise<void> {
    const { signal } = this.#tending;
    while (!signal.aborted) {
      await delay(UPKEEP_MS, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.look().catch((error: Error) =>
        this.#ctx.log.warn({ reason: error.message }, "Webhooks and instance.json could not be looked after"),
      );
    }
  }
}

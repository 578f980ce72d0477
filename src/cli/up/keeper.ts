import type { Context } from "../../context.ts";
import { waitUnlessAborted } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { findMirroredNames, registerHook } from "../hooks/repository-hooks.ts";
import { type Instance, writeInstance } from "../terminal/instance.ts";
import type { Output } from "../terminal/output.ts";
import type { Demonstration } from "./demonstration.ts";

/** A repository found meanwhile, by `owner/*` or `tain add`, has its webhook within this time. */
const HOOK_UPKEEP_MS = 15_000;

export interface Tending {
  output: Output;
  signal: AbortSignal;
  apiUrl: string;
  demonstration: Demonstration | null;
}

/** Keeps the webhooks and the instance's file in step with the mirrored repositories. */
export class Keeper {
  readonly #ctx: Context;
  readonly #tending: Tending;
  /** When to look at each repository's webhook again, by the repository's id. Infinity: it is registered. */
  readonly #hooks = new Map<number, number>();
  /** The address for upstream's deliveries; null where upstream could not reach us. */
  readonly webhookUrl: string | null;
  instance: Instance;
  #written = "";

  constructor(ctx: Context, tending: Tending, token: string) {
    this.#ctx = ctx;
    this.#tending = tending;
    const { upstreamUrl, upstreamTokens, webhookSecrets, encryptionKeys, operatorToken, publicUrl } = ctx.config;
    const { apiUrl, demonstration } = tending;
    // The simulator reaches us here; the real service only by a public address.
    const webhookUrl = `${demonstration ? apiUrl : (publicUrl ?? apiUrl)}/webhooks`;
    this.webhookUrl = demonstration || publicUrl ? webhookUrl : null;
    const [webhookSecret = ""] = webhookSecrets;
    const [upstreamToken = ""] = upstreamTokens;
    // With several, commands have to open what each of them sealed.
    const encryptionKey = encryptionKeys?.join(",") ?? null;
    const secrets = { webhookSecret, encryptionKey, operatorToken, upstreamToken };
    this.instance = { apiUrl, token, webhookUrl, ...secrets, upstreamUrl, repositories: [] };
  }

  /** Looks once: registers missing webhooks, and writes the instance's file if it has changed. */
  async look(): Promise<void> {
    const names = await findMirroredNames(this.#ctx);
    this.instance = { ...this.instance, repositories: names.map(({ owner, name }) => ({ owner, name })) };
    const text = JSON.stringify(this.instance);
    if (text !== this.#written) await writeInstance(this.#ctx.config, this.instance);
    this.#written = text;
    if (this.webhookUrl === null) return;
    for (const name of names) {
      if (this.#tending.signal.aborted) return;
      if ((this.#hooks.get(name.id) ?? 0) > performance.now()) continue;
      const refusal = await registerHook(this.#ctx, name, this.webhookUrl);
      this.#hooks.set(
        name.id,
        refusal === null ? Number.POSITIVE_INFINITY : performance.now() + RETRIES.refusedHook.firstMs,
      );
      if (refusal !== null) {
        this.#tending.output.note(
          `tain: no webhook for ${name.owner}/${name.name}: ${refusal}. Its changes are found by catch-up`,
        );
      }
    }
  }

  /** Looks again and again, until the signal aborts. A server that is away now may be back at the next look. */
  async keep(): Promise<void> {
    const { signal } = this.#tending;
    while (!signal.aborted) {
      await waitUnlessAborted(HOOK_UPKEEP_MS, signal);
      if (signal.aborted) return;
      await this.look().catch((error: Error) =>
        this.#ctx.log.warn({ reason: error.message }, "Webhooks and instance.json could not be looked after"),
      );
    }
  }
}

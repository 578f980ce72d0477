import { type Context, openContext } from "../../context.ts";
import type { Within } from "./command.ts";
import { type Instance, readInstance } from "./instance.ts";
import { openBy, openUncheckedBy } from "./open-stores.ts";

/**
 * The open resources of a command: the stores that the environment names, and upstream. If the environment names no
 * upstream, the instance's is used.
 */
export interface OpenedInstance {
  ctx: Context;
  instance: Instance | null;
  /** Whether WEBHOOK_SECRET is the receivers' secret. If not, it was made up for this command. */
  hasWebhookSecret: boolean;
}

/** @throws CommandError when there is nothing to work on yet; ConfigError */
export async function openInstance(
  env: NodeJS.ProcessEnv,
  resources: AsyncDisposableStack,
  within?: Within,
): Promise<OpenedInstance> {
  // In a worker, the schema was already checked.
  return await opened(env, within, () => openBy(openContext, env, resources));
}

/** As `openInstance`, without a check of the stores. @throws CommandError if there is no instance yet; ConfigError */
export async function openUnchecked(
  env: NodeJS.ProcessEnv,
  resources: AsyncDisposableStack,
  within?: Within,
): Promise<OpenedInstance> {
  return await opened(env, within, () => openUncheckedBy(openContext, env, resources));
}

async function opened(
  env: NodeJS.ProcessEnv,
  within: Within | undefined,
  open: () => Promise<Pick<OpenedInstance, "ctx" | "instance">>,
): Promise<OpenedInstance> {
  // A worker has the receivers' secret.
  if (within) return { ctx: within.ctx, instance: await readInstance(within.ctx.config), hasWebhookSecret: true };
  const { ctx, instance } = await open();
  return { ctx, instance, hasWebhookSecret: Boolean(env.WEBHOOK_SECRET || instance?.webhookSecret) };
}

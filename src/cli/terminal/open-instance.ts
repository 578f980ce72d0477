import { schemaFit } from "../../../db/schema-fit.ts";
import { UnfitStoreError } from "../../../db/unfit.ts";
import { parseConfig } from "../../config.ts";
import { type Context, openContext } from "../../context.ts";
import { CommandError, type Within } from "./command.ts";
import { completed, type Instance, readInstance } from "./instance.ts";
import { START } from "./typed.ts";

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
  const opened = await openUnchecked(env, resources, within);
  // In a worker, the schema was already checked.
  if (within) return opened;
  const { ctx } = opened;
  const fit = await schemaFit(ctx.db);
  if (fit instanceof UnfitStoreError) throw new CommandError(fit.message);
  if (fit === "missing")
    throw new CommandError(
      `The database has not the schema of this Tain: \`${START}\` brings it, or \`node db/migrate.ts\``,
    );
  return opened;
}

/** As `openInstance`, without a check of the stores. @throws CommandError if there is no instance yet; ConfigError */
export async function openUnchecked(
  env: NodeJS.ProcessEnv,
  resources: AsyncDisposableStack,
  within?: Within,
): Promise<OpenedInstance> {
  // A worker has the receivers' secret.
  if (within) return { ctx: within.ctx, instance: await readInstance(within.ctx.config), hasWebhookSecret: true };
  const home = env.TAIN_HOME?.trim() || ".tain";
  const instance = await readInstance({ home });
  if (!instance && !env.UPSTREAM_URL) {
    throw new CommandError(
      `Tain has not run in ${home} yet: begin with \`${START}\`, or set UPSTREAM_URL and UPSTREAM_TOKEN`,
    );
  }
  const config = parseConfig(completed(env, instance));
  const ctx = await openContext(config, resources, { name: "command", isCommand: true }).catch((error: unknown) => {
    throw error instanceof UnfitStoreError ? new CommandError(error.message) : error;
  });
  return { ctx, instance, hasWebhookSecret: Boolean(env.WEBHOOK_SECRET || instance?.webhookSecret) };
}

import { schemaFit } from "../../../db/schema-fit.ts";
import { UnfitStoreError } from "../../../db/unfit.ts";
import { type Config, parseConfig } from "../../config.ts";
import type { StoreOptions, Stores } from "../../stores.ts";
import { CommandError } from "./command.ts";
import { completed, type Instance, readInstance } from "./instance.ts";
import { START } from "./typed.ts";

/** Opens what a command needs: `openStores`, `openLocal` or `openContext`. */
type CommandOpener<Ctx> = (config: Config, resources: AsyncDisposableStack, options: StoreOptions) => Promise<Ctx>;

/**
 * The resources of a command, opened by `open`: each command loads only what it uses. If the environment names no
 * upstream, the instance's is used.
 * @throws CommandError when there is nothing to work on yet; ConfigError
 */
export async function openBy<Ctx extends Stores>(
  open: CommandOpener<Ctx>,
  env: NodeJS.ProcessEnv,
  resources: AsyncDisposableStack,
): Promise<{ ctx: Ctx; instance: Instance | null }> {
  const opened = await openUncheckedBy(open, env, resources);
  await requireSchema(opened.ctx);
  return opened;
}

/** @throws CommandError when the database has another schema than this Tain's; the database's error */
export async function requireSchema({ db }: Pick<Stores, "db">): Promise<void> {
  const fit = await schemaFit(db);
  if (fit instanceof UnfitStoreError) throw new CommandError(fit.message);
  if (fit === "missing")
    throw new CommandError(
      `The database has not the schema of this Tain: \`${START}\` brings it, or \`node db/migrate.ts\``,
    );
}

/** As `openBy`, without a check of the stores. @throws CommandError if there is no instance yet; ConfigError */
export async function openUncheckedBy<Ctx extends Stores>(
  open: CommandOpener<Ctx>,
  env: NodeJS.ProcessEnv,
  resources: AsyncDisposableStack,
): Promise<{ ctx: Ctx; instance: Instance | null }> {
  const home = env.TAIN_HOME?.trim() || ".tain";
  const instance = await readInstance({ home });
  if (!instance && !env.UPSTREAM_URL) {
    throw new CommandError(
      `Tain has not run in ${home} yet: begin with \`${START}\`, or set UPSTREAM_URL and UPSTREAM_TOKEN`,
    );
  }
  const config = parseConfig(completed(env, instance));
  const ctx = await open(config, resources, { name: "command", isCommand: true }).catch((error: unknown) => {
    throw error instanceof UnfitStoreError ? new CommandError(error.message) : error;
  });
  return { ctx, instance };
}

import { migrate } from "../../../db/migrate.ts";
import { openLogins } from "../../../db/roles.ts";
import type { Local } from "../../context.ts";
import { claimOrigin, SIMULATOR } from "../../sync/following/origin.ts";
import { CommandError } from "../terminal/command.ts";
import type { Output } from "../terminal/output.ts";
import { inSentences } from "./migrate.ts";

/** Brings the database of this environment to this version's schema. */
export async function migrateFirst(env: NodeJS.ProcessEnv, output: Output): Promise<void> {
  const url = env.DATABASE_DIRECT_URL ?? env.DATABASE_URL ?? "";
  await inSentences(migrate(url, (line) => output.note(`tain: ${line}`)));
}

/** What the processes connect to Postgres with: the addresses of the database, each with a login. */
export interface Databases {
  web: string;
  worker: string;
}

/**
 * Makes sure that this database is a mirror of this upstream. If the mirror begins anew, so do the queues. Only the
 * embedded database gets logins for roles: a given one may be shared, and its owner decides about logins.
 */
export async function beginOrGoOn(
  ctx: Pick<Local, "config" | "db" | "clock" | "queues" | "redis">,
  output: Output,
  { isDemonstration, isEmbedded }: { isDemonstration: boolean; isEmbedded: boolean },
): Promise<Databases> {
  const upstream = isDemonstration ? SIMULATOR : ctx.config.upstreamUrl;
  const claim = await claimOrigin(ctx, upstream, { isOurs: isEmbedded });
  if (isDemonstration)
    output.line("Without UPSTREAM_URL Tain mirrors a simulated upstream, whose world begins anew at each start.");
  if (claim === "emptied") {
    output.line(
      isDemonstration
        ? "The mirror of the last start's world has been emptied."
        : "This database mirrored the simulator: it has been emptied for the real upstream.",
    );
  }
  if (claim === "emptied" || isDemonstration) await emptyQueues(ctx);
  const { databaseUrl } = ctx.config;
  return isEmbedded ? await openLogins(databaseUrl) : { web: databaseUrl, worker: databaseUrl };
}

/** Removes the jobs, since a job of the old world would otherwise run in the new one. */
async function emptyQueues({ queues, redis }: Pick<Local, "queues" | "redis">): Promise<void> {
  if (redis.status !== "ready")
    throw new CommandError("Redis cannot be reached: see that REDIS_URL is right and the server runs");
  for (const queue of Object.values(queues)) await queue.obliterate({ force: true });
}

import { eq } from "drizzle-orm";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import { sql } from "../../../db/sql.ts";
import { hookSecret } from "../../config/hook-secrets.ts";
import type { Context } from "../../context.ts";
import { repositories, repositorySyncs } from "../../schema.ts";
import { noteSubscription, placeSubscribed, wantedEvents } from "../../sync/following/hook-subscriptions.ts";
import { findOrigin, SIMULATOR } from "../../sync/following/origin.ts";
import { findInstallations } from "../../upstream/credentials/installations.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { CommandError } from "../terminal/command.ts";
import type { OpenedInstance } from "../terminal/open-instance.ts";

export interface MirroredName {
  id: number;
  owner: string;
  name: string;
}

/** The mirrored repositories, in any state of their copy. */
export async function findMirroredNames({ db }: Pick<Context, "db">): Promise<MirroredName[]> {
  return await db
    .select({
      id: repositories.id,
      owner: sql<string>`split_part(${repositories.fullName}, '/', 1)`,
      name: repositories.name,
    })
    .from(repositories)
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositories.id))
    .where(IS_MIRRORED)
    .orderBy(sql`folded(${repositories.fullName})`);
}

/**
 * Registers the webhook of one repository at upstream, unless the App's own webhook serves it. Answers null, or why
 * upstream refuses it, in words.
 * @throws what `upstream` throws when it cannot be asked at all
 */
export async function registerHook(
  ctx: Pick<Context, "upstream" | "config" | "db" | "clock">,
  { id, owner, name }: MirroredName,
  url: string,
): Promise<string | null> {
  if (ctx.config.appId !== null && (await findInstallations(ctx.db, [id])).get(id)) return null;
  const secret = hookSecret(ctx.config.webhookSecrets[0] ?? "", { type: "repository", id });
  const fullName = `${owner}/${name}`;
  const events = await wantedEvents(ctx, fullName);
  const asked = await orRefusal(() => placeSubscribed(ctx, { repository: { id, fullName }, url, secret, events }));
  if ("refusal" in asked) return asked.refusal;
  await noteSubscription(ctx, { repositoryId: id, url, events });
  return null;
}

/**
 * The address to which upstream can send deliveries, if receivers know the secret. The simulator reaches this machine;
 * the real service needs a public address. Null: there is none.
 */
export async function reachableAddress({ ctx, instance, hasWebhookSecret }: OpenedInstance): Promise<string | null> {
  // Without WEBHOOK_SECRET, this command would make up a secret that receivers do not know. They would refuse every
  // delivery.
  if (!hasWebhookSecret) return null;
  if (ctx.config.publicUrl) return `${ctx.config.publicUrl}/webhooks`;
  if (!instance) return null;
  const isLocal = instance.webhookUrl === `${instance.apiUrl}/webhooks`;
  return !isLocal || (await findOrigin(ctx.db)) === SIMULATOR ? instance.webhookUrl : null;
}

export const NO_SECRET =
  "WEBHOOK_SECRET is not set, and no instance has run here that had one: set it to what the receivers have";

/** As `reachableAddress`. @throws CommandError that says what is missing */
export async function needAddress(opened: OpenedInstance): Promise<string> {
  const address = await reachableAddress(opened);
  if (address !== null) return address;
  throw new CommandError(
    opened.hasWebhookSecret
      ? "There is no address that upstream could send deliveries to: set PUBLIC_URL to the one by which the internet reaches this instance"
      : NO_SECRET,
  );
}

/** If upstream refuses one repository's hook, returns the refusal, so that the other repositories go on. */
export async function orRefusal<T>(
  ask: () => Promise<T>,
): Promise<{ found: T } | { refusal: string; error: UpstreamRefusedError }> {
  try {
    return { found: await ask() };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { refusal: error.message, error };
  }
}

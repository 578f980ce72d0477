import type { Context } from "../context.ts";
import { UpstreamRefusedError } from "../upstream/errors.ts";
import { ensureRepositoryHook } from "../upstream/hooks.ts";

/** What the mirror reads; other events would be accepted and ignored. */
const followedEvents = [
  "issues",
  "issue_comment",
  "label",
  "milestone",
  "public",
  "pull_request",
  "pull_request_review",
  "pull_request_review_comment",
  "repository",
] as const;

export interface MirroredName {
  id: number;
  owner: string;
  name: string;
}

/** The repositories that are mirrored, whatever state their copy is in. */
export async function findMirroredNames({ db }: Pick<Context, "db">): Promise<MirroredName[]> {
  const { rows } = await db.$client.query<{ id: string; full_name: string; name: string }>(
    "select r.id, r.full_name, r.name from repositories r join repository_syncs s on s.repository_id = r.id where s.state <> 'gone' order by lower(r.full_name)",
  );
  return rows.map(({ id, full_name: fullName, name }) => ({
    id: Number(id),
    owner: fullName.split("/")[0] ?? "",
    name,
  }));
}

/**
 * Registers the webhook of one repository at upstream. Answers null, or why upstream refuses it, in words.
 * @throws what `upstream` throws when it cannot be asked at all
 */
export async function registerHook(
  ctx: Pick<Context, "upstream" | "config">,
  { owner, name }: MirroredName,
  url: string,
): Promise<string | null> {
  const secret = ctx.config.webhookSecrets[0] ?? "";
  try {
    await ensureRepositoryHook(ctx.upstream, { fullName: `${owner}/${name}`, url, secret, events: followedEvents });
    return null;
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return error.message;
  }
}

import { and, isNotNull, not } from "drizzle-orm";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { madeWith, pauseTargets } from "../../events/target.ts";
import { repositories } from "../../schema.ts";
import type { UpstreamAsCaller } from "../../upstream/client/as-caller.ts";
import { fingerprint } from "../../upstream/credentials/credentials.ts";
import { ASKED_AT_ONCE, askPermissions, type RepositoryPermission, type RepositoryRights } from "./upstream-rights.ts";

interface Parts extends Pick<Context, "db" | "clock" | "log" | "config"> {
  upstream: Pick<UpstreamAsCaller["identity"], "graphql">;
}

/** Pauses the hooks that a token of upstream's made, since upstream refuses the token. */
export async function pauseOfRefused(parts: Parts, token: string): Promise<void> {
  if (parts.db.isReadOnly) return;
  const made = await madeWith(parts, fingerprint(token));
  await pauseTargets(
    parts,
    made.map(({ id }) => id),
    "Upstream refuses the token that made it",
  );
}

/**
 * Pauses the hooks of a token of upstream's in repositories that its owner may administer no more, by what upstream has
 * just said. Mostly the token has made none, which costs one look into a small table. Upstream shows no level to Apps, so
 * theirs are judged by access alone, and an organization's by whether upstream accepts the token.
 * @throws as `unusable`
 */
export async function pauseOfLostRights(
  parts: Parts,
  token: string,
  { rights, isApps }: { rights: ReadonlyMap<number, RepositoryRights>; isApps: boolean },
): Promise<void> {
  if (parts.db.isReadOnly) return;
  const made = await madeWith(parts, fingerprint(token));
  const repositoryIds = made.flatMap(({ scope }) => (scope.kind === "repository" ? [scope.id] : []));
  if (repositoryIds.length === 0) return;
  const rows = await parts.db
    .select({ id: repositories.id, nodeId: sql<string>`${repositories.nodeId}` })
    .from(repositories)
    .where(and(among(repositories.id, repositoryIds), not(repositories.private), isNotNull(repositories.nodeId)));
  const open = new Map<number, RepositoryPermission>();
  for (let at = 0; at < rows.length; at += ASKED_AT_ONCE)
    for (const [id, level] of await askPermissions(parts, token, rows.slice(at, at + ASKED_AT_ONCE)))
      open.set(id, level);
  const levelIn = (id: number) => rights.get(id)?.permission ?? open.get(id) ?? null;
  const lost = made.filter(({ scope }) => {
    if (scope.kind !== "repository") return false;
    const level = levelIn(scope.id);
    return level === null || !(isApps || level === "ADMIN");
  });
  await pauseTargets(
    parts,
    lost.map(({ id }) => id),
    "Who made it may not administer the repository at upstream any more",
  );
}

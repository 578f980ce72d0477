import { escapeLike, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { requireList } from "../../mirror/store/representation.ts";
import { CredentialRejectedError } from "../../upstream/client/errors.ts";
import { pages } from "../../upstream/client/pagination.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { learnOwners } from "../../upstream/credentials/token-owners.ts";
import { beginMirroring, type Reason } from "./begin.ts";
import { followInstallations } from "./installations.ts";
import { forgetRemovals } from "./state.ts";

/**
 * Adds wishes of what to mirror: `owner/name` or `owner/*`. A wish that is there already stays as it is. A new `owner/*` also
 * wishes for what was removed here one by one.
 */
export async function addSelections(ctx: Pick<Context, "db" | "clock">, patterns: readonly string[]): Promise<void> {
  for (const wish of patterns) {
    const pattern = wish.toLowerCase();
    await ctx.db.transaction(async (tx) => {
      const added = await tx.count(
        sql`insert into selections (pattern, added_at) values (${pattern}, ${ctx.clock.now()}) on conflict do nothing`,
      );
      if (added === 0 || !pattern.endsWith("/*")) return;
      await forgetRemovals(tx, `${escapeLike(pattern.slice(0, -1))}%`);
    });
  }
}

/**
 * Finds the repositories that the selections name and begins to mirror those that are not yet. A selection that cannot be
 * resolved keeps its problem in words and is tried again; the others go on.
 */
export async function resolveSelections(ctx: Context): Promise<void> {
  await addSelections(ctx, ctx.config.repositories);
  await learnOwners(ctx);
  if (ctx.config.appId !== null) await mirrorInstalled(ctx);
  const wishes = await ctx.db.query<{ pattern: string; resolved_at: Date | null }>(
    sql`select pattern, resolved_at from selections order by added_at, pattern`,
  );
  const patterns = wishes.map(({ pattern }) => pattern);
  const followed = await followedAmong(ctx, patterns);
  for (const { pattern, resolved_at } of wishes) {
    const [owner = "", name = ""] = pattern.split("/");
    // A repository that an earlier wish has just begun is not asked for again.
    if (followed.has(pattern) || (name !== "*" && (await followedAmong(ctx, [pattern])).size > 0)) continue;
    const problem =
      name === "*"
        ? (await isInstalledAlone(ctx, owner))
          ? null
          : await mirrorOwner(ctx, pattern, resolved_at !== null)
        : await mirrorOne(ctx, pattern, `/repos/${pattern}`, { pattern });
    const resolvedAt = problem === null ? ctx.clock.now() : null;
    await ctx.db.query(sql`update selections set problem = ${problem},
      resolved_at = coalesce(${resolvedAt}::timestamptz, resolved_at) where pattern = ${pattern}`);
  }
}

/**
 * Mirrors the repositories that the App is installed on: all of them if REPOSITORIES is empty, otherwise those that the
 * selections name. A failure of the App does not fail the tokens' part.
 */
async function mirrorInstalled(ctx: Context): Promise<void> {
  const rows = await ctx.db.query<{ pattern: string }>(sql`select pattern from selections`);
  const patterns = new Set(rows.map(({ pattern }) => pattern));
  const wantsAll = ctx.config.repositories.length === 0;
  try {
    await followInstallations(ctx, {
      isWanted: (fullName) => {
        const name = fullName.toLowerCase();
        return wantsAll || patterns.has(name) || patterns.has(`${name.split("/")[0]}/*`);
      },
      begin: (representation, seenAt) => beginMirroring(ctx, representation, seenAt, "installed"),
      beginById: async (repositoryId) => {
        const path = `/repositories/${repositoryId}`;
        const problem = await mirrorOne(ctx, path, path, "installed");
        if (problem) ctx.log.info({ repositoryId, problem }, "An installed repository cannot be mirrored yet");
      },
    });
  } catch (error) {
    if (!(error instanceof CredentialRejectedError) || ctx.config.upstreamTokens.length === 0) throw error;
    ctx.log.warn({ reason: error.message }, "The App's installations cannot be read");
  }
}

/** Whether the App alone decides what is mirrored of the account: it is installed there, and there is no token. */
async function isInstalledAlone(ctx: Context, owner: string): Promise<boolean> {
  if (ctx.config.upstreamTokens.length > 0) return false;
  return (await ctx.db.count(sql`select from installations where lower(account) = ${owner}`)) > 0;
}

/** Answers the problem in words, or null when the repository is mirrored. */
async function mirrorOne(ctx: Context, name: string, path: string, reason: Reason): Promise<string | null> {
  const answer = await ctx.upstream.get(path, { priority: "catch-up" });
  switch (answer.kind) {
    case "ok":
      await beginMirroring(ctx, answer.body, answer.seenAt, reason);
      return null;
    case "moved":
      if (answer.location?.startsWith("/repositories/")) return mirrorOne(ctx, name, answer.location, reason);
      return `upstream says that ${name} has moved, and not where to`;
    case "missing":
      return `upstream answers ${answer.status} (${answer.message}): check the name, and that the token may see it`;
    case "unchanged":
      throw new Error("Upstream answers 304 to what was not asked conditionally");
    default:
      return answer satisfies never;
  }
}

async function mirrorOwner(ctx: Context, pattern: string, isKnown: boolean): Promise<string | null> {
  const [owner] = pattern.split("/");
  for (const list of [`/orgs/${owner}/repos?per_page=100`, `/users/${owner}/repos?per_page=100`]) {
    if (await mirrorList(ctx, list, pattern, isKnown)) return null;
  }
  return `upstream knows no organisation and no user ${owner}`;
}

/**
 * The list is read every minute, and so conditionally: unchanged it costs nothing. The first time it is read whole, since
 * what stands unchanged on it may have been removed here. False: there is no such list.
 */
async function mirrorList(ctx: Context, first: string, pattern: string, conditional: boolean): Promise<boolean> {
  for await (const page of pages(ctx.upstream, first, { priority: "catch-up", conditional })) {
    if (page.kind === "moved" || page.kind === "missing") return false;
    if (page.kind === "unchanged") continue;
    for (const representation of requireList(page.path, page.body))
      await beginMirroring(ctx, representation, page.seenAt, { pattern });
    // Only now, since it says that the page needs no second look.
    if (page.validator) await saveValidator(ctx.db, page.validator);
  }
  return true;
}

/** The full names among these, in lower case, that mirrored repositories have or had. */
async function followedAmong(ctx: Pick<Context, "db">, fullNames: readonly string[]): Promise<Set<string>> {
  const names = sql.value(fullNames);
  const rows = await ctx.db.query<{ name: string }>(sql`
    with named as (select lower(full_name) as name, id from repositories where lower(full_name) = any(${names}::text[])
        union all select full_name, repository_id from former_names where full_name = any(${names}::text[]))
      select n.name from named n join repository_syncs s on s.repository_id = n.id where s.state <> 'gone'`);
  return new Set(rows.map(({ name }) => name));
}

import { MIRRORED } from "../../../db/schema/states.ts";
import { escapeLike, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import { requireList } from "../../mirror/store/observation.ts";
import { pages } from "../../upstream/client/pagination.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { findTokenOf, learnOwner, tokensWithoutOwner } from "../../upstream/credentials/token-owners.ts";
import { AbsentError, type CredentialWait } from "../problems/causes.ts";
import { eachAlone } from "../problems/isolated.ts";
import { forgetProblems } from "../problems/problems.ts";
import { beginMirroring, type Reason } from "./begin.ts";
import { type Beginning, followInstallations } from "./installations.ts";
import { settleParts } from "./parts.ts";
import { forgetRemovals } from "./state.ts";

/**
 * Adds selections of what to mirror: `owner/name` or `owner/*`. An existing selection stays as it is. A new `owner/*`
 * also brings back repositories that were removed here one by one.
 */
export async function addSelections(ctx: Pick<Context, "db" | "clock">, patterns: readonly string[]): Promise<void> {
  for (const selection of patterns) {
    const pattern = selection.toLowerCase();
    await ctx.db.transaction(async (tx) => {
      const added = await tx.count(
        sql`insert into selections (pattern, added_at) values (${pattern}, ${ctx.clock.now()}) on conflict do nothing`,
      );
      if (added === 0 || !pattern.endsWith("/*")) return;
      await forgetRemovals(tx, `${escapeLike(pattern.slice(0, -1))}%`);
    });
  }
}

/** A row of `selections`. */
interface Selection {
  pattern: string;
  /**
   * For `owner/*`, whether the owner is a user or an organisation: their repositories are listed in different places.
   * Null: not known yet.
   */
  accountType: string | null;
  isResolved: boolean;
}

/**
 * Finds the repositories that the selections name and begins to mirror those that are not yet. A selection that cannot
 * be resolved keeps its problem in words and is left alone for a while; the others go on.
 * Once the signal aborts, the rest is left to the next time.
 * @throws QuotaSpentError, CredentialRejectedError at the end, when some have to wait
 */
export async function resolveSelections(ctx: Context, signal?: AbortSignal): Promise<void> {
  await addSelections(ctx, ctx.config.repositories);
  await learnOwners(ctx, signal);
  const installed = ctx.config.appId === null ? null : await mirrorInstalled(ctx, signal);
  const selections = await ctx.db.query<Selection>(sql`
    select pattern, account_type as "accountType", resolved_at is not null as "isResolved"
      from selections order by added_at, pattern`);
  const patterns = selections.map(({ pattern }) => pattern);
  const followed = await followedAmong(ctx, patterns);
  await forgetProblems(ctx.db, { task: "select", keys: [...followed] });
  const waiting = await eachAlone(
    ctx,
    selections.filter(({ pattern }) => !followed.has(pattern)),
    {
      subjectOf: ({ pattern }) => ({ task: "select", key: pattern, repositoryId: null }),
      // Each account has an installation of its own, if any.
      groupOf: ({ pattern }) => (ctx.config.appId === null ? null : pattern.split("/")[0]),
      signal,
      work: (selection) => resolve(ctx, selection),
    },
  );
  await settleParts(ctx);
  // If there are tokens too, the spent quota of the App is no failure.
  const held = waiting ?? (ctx.config.upstreamTokens.length === 0 ? installed : null);
  if (held) throw held;
}

async function resolve(ctx: Context, selection: Selection): Promise<void> {
  const { pattern } = selection;
  const [owner = "", name = ""] = pattern.split("/");
  // An earlier selection may have just begun the repository.
  if (name !== "*" && (await followedAmong(ctx, [pattern])).size > 0) return;
  if (name !== "*") await mirrorOne(ctx, pattern, `/repos/${pattern}`, { pattern });
  else if (!(await isInstalledAlone(ctx, owner))) await mirrorOwner(ctx, owner, selection);
  await ctx.db.query(sql`update selections set resolved_at = ${ctx.clock.now()} where pattern = ${pattern}`);
}

/**
 * Asks upstream which user each token belongs to. The tokens of one user share one quota, and see that user's private
 * repositories.
 */
async function learnOwners(ctx: Context, signal?: AbortSignal): Promise<void> {
  await eachAlone(ctx, await tokensWithoutOwner(ctx), {
    subjectOf: (token) => ({ task: "token", key: token, repositoryId: null }),
    groupOf: (token) => token,
    signal,
    work: (token) => learnOwner(ctx, token),
  });
}

/**
 * Mirrors the repositories that the App is installed on: all of them if REPOSITORIES is empty, otherwise those that the
 * selections name. A failure of the App or of an installation does not fail the others. Answers why some have to wait.
 */
async function mirrorInstalled(ctx: Context, signal: AbortSignal | undefined): Promise<CredentialWait | null> {
  const rows = await ctx.db.query<{ pattern: string }>(sql`select pattern from selections`);
  const patterns = new Set(rows.map(({ pattern }) => pattern));
  const wantsAll = ctx.config.repositories.length === 0;
  const beginning: Beginning = {
    isWanted: (fullName) => {
      const name = fullName.toLowerCase();
      return wantsAll || patterns.has(name) || patterns.has(`${name.split("/")[0]}/*`);
    },
    begin: (representation, seenAt) => beginMirroring(ctx, representation, seenAt, "installed"),
    beginById: (repositoryId, fullName) => mirrorOne(ctx, fullName, `/repositories/${repositoryId}`, "installed"),
  };
  return await followInstallations(ctx, beginning, signal);
}

/** Whether the App alone decides what is mirrored of the account: it is installed there, and there is no token. */
async function isInstalledAlone(ctx: Context, owner: string): Promise<boolean> {
  if (ctx.config.upstreamTokens.length > 0) return false;
  return (await ctx.db.count(sql`select from installations where lower(account) = ${owner}`)) > 0;
}

/** @throws AbsentError when upstream does not show the repository, or says again and again that it has moved */
async function mirrorOne(
  ctx: Context,
  name: string,
  path: string,
  reason: Reason,
  { hasMoved = false } = {},
): Promise<void> {
  const answer = await ctx.upstream.get(path, { priority: "catch-up" });
  switch (answer.kind) {
    case "ok":
      return await beginMirroring(ctx, answer.body, answer.seenAt, reason);
    case "moved":
      if (hasMoved) throw new AbsentError(`upstream says again and again that ${name} has moved`);
      if (answer.location?.startsWith("/repositories/"))
        return await mirrorOne(ctx, name, answer.location, reason, { hasMoved: true });
      throw new AbsentError(`upstream says that ${name} has moved, and not where to`);
    case "missing":
      throw new AbsentError(
        `upstream answers ${answer.status} (${answer.message}): check the name, and that the token may see it`,
      );
    case "unchanged":
      throw new Error("Upstream answers 304 to what was not asked conditionally");
    default:
      return answer satisfies never;
  }
}

/** @throws AbsentError when upstream knows no such owner */
async function mirrorOwner(
  ctx: Context,
  owner: string,
  { pattern, accountType, isResolved }: Selection,
): Promise<void> {
  const type = accountType ?? (await learnType(ctx, owner, pattern));
  if (accountType === null && type === "User") await learnOwners(ctx);
  const own = type === "Organization" ? null : await findTokenOf(ctx, owner);
  // A user's list shows public repositories alone, and their own list all of them.
  const list = own
    ? { path: "/user/repos?affiliation=owner&per_page=100", credential: own }
    : { path: `/${type === "Organization" ? "orgs" : "users"}/${owner}/repos?per_page=100` };
  if (await mirrorList(ctx, list, pattern, isResolved)) return;
  await ctx.db.query(sql`update selections set account_type = null where pattern = ${pattern}`);
  throw new AbsentError(`upstream lists no repositories of ${owner} any more`);
}

/**
 * A user's and an organisation's repositories are listed in different places. Asked once: to ask in the wrong one costs
 * a request.
 */
async function learnType(ctx: Context, owner: string, pattern: string): Promise<string> {
  const answer = await ctx.upstream.get(`/users/${owner}`, { priority: "catch-up" });
  if (answer.kind !== "ok") throw new AbsentError(`upstream knows no organisation and no user ${owner}`);
  const type = objectOf(answer.body).type === "Organization" ? "Organization" : "User";
  await ctx.db.query(sql`update selections set account_type = ${type} where pattern = ${pattern}`);
  return type;
}

/**
 * The list is read every minute, so the request is conditional: an unchanged list costs nothing. The first read is
 * unconditional, since repositories on an unchanged list may have been removed here. False: there is no such list.
 */
async function mirrorList(
  ctx: Context,
  { path, ...options }: { path: string; credential?: string },
  pattern: string,
  conditional: boolean,
): Promise<boolean> {
  for await (const page of pages(ctx.upstream, path, { priority: "catch-up", conditional, ...options })) {
    if (page.kind === "moved" || page.kind === "missing") return false;
    if (page.kind === "unchanged") continue;
    for (const representation of requireList(page.path, page.body))
      await beginMirroring(ctx, representation, page.seenAt, { pattern });
    // Stored last, since the validator says that the page needs no second look.
    const { validator } = page;
    if (validator) await ctx.db.transaction((tx) => saveValidator(tx, validator));
  }
  return true;
}

/** The full names among these, in lower case, that mirrored repositories have or had. */
async function followedAmong(ctx: Pick<Context, "db">, fullNames: readonly string[]): Promise<Set<string>> {
  const names = sql.value(fullNames);
  const rows = await ctx.db.query<{ name: string }>(sql`
    with named as (select lower(full_name) as name, id from repositories where lower(full_name) = any(${names}::text[])
        union all select full_name, repository_id from former_names where full_name = any(${names}::text[]))
      select n.name from named n join repository_syncs s on s.repository_id = n.id where ${MIRRORED}`);
  return new Set(rows.map(({ name }) => name));
}

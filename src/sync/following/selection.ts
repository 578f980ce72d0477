import { and, eq, or } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { escapeLike, sql } from "../../../db/sql.ts";
import { exceptionIn } from "../../config/values.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf } from "../../json.ts";
import { requireList } from "../../mirror/store/observation.ts";
import { repositories, repositorySyncs, selections } from "../../schema.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { findTokenOf, learnOwner, tokensWithoutOwner } from "../../upstream/credentials/token-owners.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import type { CredentialWait } from "../problems/causes.ts";
import { AbsentError } from "../problems/errors.ts";
import { eachAlone, eachStored } from "../problems/isolated.ts";
import { forgetProblems } from "../problems/problems.ts";
import { beginMirroring, type Reason } from "./begin.ts";
import { type Beginning, followInstallations } from "./installations.ts";
import { settleParts } from "./parts.ts";
import { forgetRemovals, remove } from "./state.ts";

/**
 * Adds selections of what to mirror: `owner/name` or `owner/*`. An existing selection stays as it is. A new `owner/*`
 * also brings back repositories that were removed here one by one. `!owner/name` is an exception: that repository is not
 * mirrored, whatever covers it, until it is named again.
 */
export async function addSelections(ctx: Pick<Context, "db" | "clock">, patterns: readonly string[]): Promise<void> {
  for (const selection of patterns) {
    const pattern = selection.toLowerCase();
    await ctx.db.transaction(async (tx) => {
      const added = await tx.count(
        sql`insert into selections (pattern, added_at) values (${pattern}, ${ctx.clock.now()}) on conflict do nothing`,
      );
      if (added === 0) return;
      const excepted = exceptionIn(pattern);
      if (excepted !== null) await stopMirroring(tx, pattern, excepted);
      else if (pattern.endsWith("/*")) await forgetRemovals(tx, `${escapeLike(pattern.slice(0, -1))}%`);
      else await endException(tx, pattern);
    });
  }
}

/** A repository that is named is excepted no more, neither by this name nor by the one that it had. */
async function endException(tx: Transaction, fullName: string): Promise<void> {
  const named = sql`select ${repositories.id} from ${repositories} where folded(${repositories.fullName}) = ${fullName}`;
  await tx
    .delete(selections)
    .where(or(eq(selections.pattern, `!${fullName}`), sql`${selections.exceptedId} in (${named})`));
}

/** Of an exception: its repository is no longer named, and no longer mirrored. */
async function stopMirroring(tx: Transaction, pattern: string, fullName: string): Promise<void> {
  await tx.delete(selections).where(eq(selections.pattern, fullName));
  const rows = await tx
    .select({ id: repositories.id })
    .from(repositories)
    .innerJoin(repositorySyncs, and(eq(repositorySyncs.repositoryId, repositories.id), IS_MIRRORED))
    .where(sql`folded(${repositories.fullName}) = ${fullName}`);
  const ids = rows.map(({ id }) => id);
  await tx
    .update(selections)
    .set({ exceptedId: ids[0] ?? null })
    .where(eq(selections.pattern, pattern));
  await remove(tx, ids);
  tx.touch(ids);
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
  const selected: Selection[] = await ctx.db
    .select({
      pattern: selections.pattern,
      accountType: selections.accountType,
      isResolved: sql<boolean>`${selections.resolvedAt} is not null`,
    })
    .from(selections)
    .where(sql`${selections.pattern} not like '!%'`)
    .orderBy(selections.addedAt, selections.pattern);
  const patterns = selected.map(({ pattern }) => pattern);
  const followed = await followedAmong(ctx, patterns);
  await forgetProblems(ctx.db, { task: "select", keys: [...followed] });
  const waiting = await eachAlone(
    ctx,
    selected.filter(({ pattern }) => !followed.has(pattern)),
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
  await ctx.db.update(selections).set({ resolvedAt: ctx.clock.now() }).where(eq(selections.pattern, pattern));
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
  const rows = await ctx.db.select({ pattern: selections.pattern, exceptedId: selections.exceptedId }).from(selections);
  const patterns = new Set(rows.map(({ pattern }) => pattern));
  // An exception whose repository was not seen yet is learned at the beginning, which it then prevents.
  const excepted = rows.filter(({ exceptedId }) => exceptedId !== null);
  const exceptions: ReadonlySet<string | number | null> = new Set(
    excepted.flatMap(({ pattern, exceptedId }) => [pattern, exceptedId]),
  );
  const wantsAll = ctx.config.repositories.length === 0;
  const beginning: Beginning = {
    isWanted: ({ id, fullName }) => {
      const name = fullName.toLowerCase();
      if (exceptions.has(id) || exceptions.has(`!${name}`)) return false;
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
  return (await ctx.db.count(sql`select from installations where folded(account) = ${owner}`)) > 0;
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
      // The service names the repository's id. Other servers of its dialect show the new name.
      if (answer.location !== null && /^\/(repositories\/\d+|repos\/[^/]+\/[^/]+)$/.test(answer.location))
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
  await ctx.db.update(selections).set({ accountType: null }).where(eq(selections.pattern, pattern));
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
  await ctx.db.update(selections).set({ accountType: type }).where(eq(selections.pattern, pattern));
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
  const faults: unknown[] = [];
  for await (const page of pages(ctx.upstream, path, { priority: "catch-up", conditional, ...options })) {
    if (page.kind === "moved" || page.kind === "missing") return false;
    if (page.kind === "unchanged") continue;
    const begin = (shown: Json) => beginMirroring(ctx, shown, page.seenAt, { pattern });
    const onPage = await eachStored(requireList(page.path, page.body), begin);
    faults.push(...onPage);
    // Stored last, since the validator says that the page needs no second look.
    const { validator } = page;
    if (validator && onPage.length === 0) await ctx.db.transaction((tx) => saveValidator(tx, validator));
  }
  if (faults.length > 0) throw faults[0];
  return true;
}

/**
 * For how many intervals of catch-ups an answer about a name is believed that its repository has lost, or whose
 * repository upstream does not show by its id. The name may be another's by now, and each question costs a request.
 */
const ANSWERED_INTERVALS = 2;

/**
 * The full names among these, in lower case, that lead to a mirrored repository as far as upstream confirms it. Upstream
 * is asked at once for the name of a repository that was paused, and now and then for that and for a name that a
 * repository had before.
 */
async function followedAmong(
  ctx: Pick<Context, "db" | "clock" | "config">,
  fullNames: readonly string[],
): Promise<Set<string>> {
  const names = sql`${fullNames}`;
  const askedSince = new Date(ctx.clock.now().getTime() - ANSWERED_INTERVALS * ctx.config.catchUpIntervalMs);
  const rows = await ctx.db.query<{ name: string }>(sql`
    select folded(r.full_name) as name from repositories r join repository_syncs s on s.repository_id = r.id
        where folded(r.full_name) = any(${names}::text[]) and r.deleted_at is null and (s.state in ('live', 'backfilling')
          or (s.state = 'paused' and exists (select from selections w join problems p on p.repository_id = s.repository_id
            where w.pattern = folded(r.full_name) and w.resolved_at > p.since and w.resolved_at > ${askedSince})))
      union all select f.full_name from former_names f join repository_syncs s on s.repository_id = f.repository_id
        join selections w on w.pattern = f.full_name and w.resolved_at > ${askedSince}
        where f.full_name = any(${names}::text[]) and ${MIRRORED}`);
  return new Set(rows.map(({ name }) => name));
}

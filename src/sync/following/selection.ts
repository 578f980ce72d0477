import { sql } from "../../../db/drizzle.ts";
import { touch } from "../../../db/revisions.ts";
import type { Context } from "../../context.ts";
import { mergeObserved, type Transaction } from "../../mirror/store/merge.ts";
import { observe } from "../../mirror/store/observation.ts";
import type { Fields } from "../../mirror/store/template.ts";
import { enqueueBackfill } from "../../queues/enqueue.ts";
import { QueueUnavailableError } from "../../queues/queues.ts";
import { CredentialRejectedError } from "../../upstream/client/errors.ts";
import type { Answer } from "../../upstream/client/upstream.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { learnOwners } from "../../upstream/credentials/token-owners.ts";
import { followInstallations } from "./installations.ts";
import { begin, forgetRemovals, remove } from "./state.ts";

/**
 * Adds wishes of what to mirror: `owner/name` or `owner/*`. Those already there stay as they are; a new `owner/*` also wishes
 * for what was removed here one by one.
 */
export async function addSelections(ctx: Pick<Context, "db" | "clock">, patterns: readonly string[]): Promise<void> {
  for (const wish of patterns) {
    const pattern = wish.toLowerCase();
    await ctx.db.transaction(async (tx) => {
      const { rowCount } = await tx.execute(
        sql`insert into selections (pattern, added_at) values (${pattern}, ${ctx.clock.now().toISOString()}::timestamptz) on conflict do nothing`,
      );
      if (rowCount === 0 || !pattern.endsWith("/*")) return;
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
  const { rows } = await ctx.db.$client.query<{ pattern: string; resolved_at: Date | null }>(
    "select pattern, resolved_at from selections order by added_at, pattern",
  );
  const followed = await followedAmong(
    ctx,
    rows.map(({ pattern }) => pattern),
  );
  for (const { pattern, resolved_at } of rows) {
    const [owner = "", name = ""] = pattern.split("/");
    // What an earlier wish has just begun is not asked for again.
    if (followed.has(pattern) || (name !== "*" && (await followedAmong(ctx, [pattern])).size > 0)) continue;
    const problem =
      name === "*"
        ? (await isInstalledAlone(ctx, owner))
          ? null
          : await mirrorOwner(ctx, pattern, resolved_at !== null)
        : await mirrorOne(ctx, pattern, `/repos/${pattern}`, { pattern });
    const resolvedAt = problem === null ? ctx.clock.now().toISOString() : null;
    await ctx.db.execute(
      sql`update selections set problem = ${problem}, resolved_at = coalesce(${resolvedAt}::timestamptz, resolved_at) where pattern = ${pattern}`,
    );
  }
}

/**
 * Mirrors what the App is installed on: all of it where REPOSITORIES names nothing, otherwise what the selections name.
 * A failure of the App's is not one of the tokens'.
 */
async function mirrorInstalled(ctx: Context): Promise<void> {
  const { rows } = await ctx.db.$client.query<{ pattern: string }>("select pattern from selections");
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

/** Whether the App alone decides what of the account is mirrored: it is installed there, and there is no token. */
async function isInstalledAlone(ctx: Context, owner: string): Promise<boolean> {
  if (ctx.config.upstreamTokens.length > 0) return false;
  const { rowCount } = await ctx.db.$client.query("select from installations where lower(account) = $1", [owner]);
  return (rowCount ?? 0) > 0;
}

/**
 * The user whose token mirrors upstream: who `/user` answers as to our own callers. Of an App alone it is the account that
 * owns it. Answers the user's id.
 */
export async function readViewer(ctx: Context): Promise<number> {
  const isApp = ctx.config.upstreamTokens.length === 0;
  const answer = await ctx.upstream.get(isApp ? "/app" : "/user", { priority: "caller" });
  if (answer.kind !== "ok") throw new Error("Upstream does not say whose token UPSTREAM_TOKEN is");
  const user = (isApp ? (answer.body as { owner: Fields }).owner : answer.body) as Fields;
  await ctx.db.transaction((tx) =>
    mergeObserved(tx, observe("user", user, { api: ctx.config.upstreamUrl, seenAt: answer.seenAt, read: true })),
  );
  return user.id as number;
}

/** Why a repository is to be mirrored: a wish of `selections`, or that the App is installed on it. */
type Reason = { pattern: string } | "installed";

/** Answers the problem in words, or null when the repository is mirrored. */
async function mirrorOne(ctx: Context, name: string, path: string, reason: Reason): Promise<string | null> {
  const answer = await ctx.upstream.get(path, { priority: "catch-up" });
  switch (answer.kind) {
    case "ok":
      await beginMirroring(ctx, answer.body as Fields, answer.seenAt, reason);
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
 * Asked every minute, and so conditionally: a list that has not changed costs nothing. Not the first time, when what has not
 * changed may have been removed here. False: there is no such list.
 */
async function mirrorList(ctx: Context, first: string, pattern: string, conditional: boolean): Promise<boolean> {
  for (let path: string | null = first; path !== null; ) {
    const answer: Answer = await ctx.upstream.get(path, { priority: "catch-up", conditional });
    if (answer.kind === "moved" || answer.kind === "missing") return false;
    if (answer.kind === "ok") {
      for (const representation of answer.body as Fields[]) {
        await beginMirroring(ctx, representation, answer.seenAt, { pattern });
      }
      // Only now, since it says that the page needs no second look.
      if (answer.validator) await saveValidator(ctx.db, answer.validator);
    }
    path = answer.kind === "ok" ? (answer.links.next ?? null) : answer.next;
  }
  return true;
}

async function beginMirroring(ctx: Context, representation: Fields, seenAt: Date, reason: Reason): Promise<void> {
  const repositoryId = representation.id as number;
  const isNew = await ctx.db.transaction(async (tx) => {
    if (reason !== "installed" && !(await holdWish(tx, reason.pattern))) return false;
    await mergeObserved(tx, observe("repository", representation, { api: ctx.config.upstreamUrl, seenAt, read: true }));
    const isNamed = reason !== "installed" && !reason.pattern.endsWith("/*");
    const isNew = await begin(tx, repositoryId, { isNamed, wishedAt: ctx.clock.now() });
    touch(tx, [repositoryId]);
    if (isNew) await tx.execute(sql`delete from backfill_phases where repository_id = ${repositoryId}`);
    return isNew;
  });
  if (!isNew) return;
  try {
    await enqueueBackfill(ctx, { repositoryId }, { rank: await countCopies(ctx, String(representation.full_name)) });
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error; // The scheduler queues every backfill that has no job.
  }
}

/** Whether the wish still stands. A removal of it that comes meanwhile waits for the end of the transaction. */
async function holdWish(tx: Transaction, pattern: string): Promise<boolean> {
  const { rowCount } = await tx.execute(sql`select from selections where pattern = ${pattern} for key share`);
  return rowCount !== 0;
}

/** How many first copies of the account's repositories are under way or wait, this one included. */
async function countCopies({ db }: Pick<Context, "db">, fullName: string): Promise<number> {
  const { rows } = await db.$client.query<{ count: number }>(
    `select count(*)::integer as count from repository_syncs s join repositories r on r.id = s.repository_id
      where s.state = 'backfilling' and lower(r.full_name) like $1`,
    [`${escapeLike(fullName.split("/")[0]?.toLowerCase() ?? "")}/%`],
  );
  return Math.max(1, rows[0]?.count ?? 1);
}

/** Which of the full names, in lower case, are or were those of mirrored repositories. */
async function followedAmong(ctx: Pick<Context, "db">, fullNames: readonly string[]): Promise<Set<string>> {
  const { rows } = await ctx.db.$client.query<{ name: string }>(
    `with named as (select lower(full_name) as name, id from repositories where lower(full_name) = any($1)
        union all select full_name, repository_id from former_names where full_name = any($1))
      select n.name from named n join repository_syncs s on s.repository_id = n.id where s.state <> 'gone'`,
    [fullNames],
  );
  return new Set(rows.map(({ name }) => name));
}

/**
 * Stops mirroring. The rows are kept, and served no more; `purge` deletes them in batches.
 * Answers the repositories' full names; none: nothing of that name is mirrored.
 */
export async function removeSelection(
  ctx: Pick<Context, "db">,
  pattern: string,
  { purge }: { purge: boolean },
): Promise<string[]> {
  const name = pattern.toLowerCase();
  const like = name.endsWith("/*") ? `${escapeLike(name.slice(0, -1))}%` : escapeLike(name);
  const removed = await ctx.db.transaction(async (tx) => {
    // First, since what the wish is just beginning has to be found below: see `holdWish`.
    await tx.execute(sql`delete from selections where pattern = ${name}`);
    const { rows } = await tx.execute<{ id: string; full_name: string }>(
      sql`select r.id, r.full_name from repositories r join repository_syncs s on s.repository_id = r.id
        where lower(r.full_name) like ${like} and (${purge} or s.state <> 'gone') order by r.id`,
    );
    const found = rows.map(({ id, full_name }) => ({ id: Number(id), fullName: full_name }));
    await remove(
      tx,
      found.map(({ id }) => id),
    );
    return found;
  });
  if (purge) for (const { id } of removed) await purgeRepository(ctx, id);
  return removed.map(({ fullName }) => fullName);
}

const BY_REPOSITORY = [
  "issue_labels",
  "issue_assignees",
  "issue_comments",
  "pull_request_review_comments",
  "pull_request_reviews",
  "pull_requests",
  "issues",
  "labels",
  "milestones",
  "backfill_phases",
  "refresh_marks",
  "audits",
  "audit_pages",
  "sweeps",
  "hook_checks",
  "repository_syncs",
] as const;
const PURGE_BATCH = 5_000;

async function purgeRepository(ctx: Pick<Context, "db">, repositoryId: number): Promise<void> {
  for (const table of BY_REPOSITORY) {
    // In batches: one statement over millions of rows would hold its locks for minutes.
    for (let deleted = PURGE_BATCH; deleted === PURGE_BATCH; ) {
      const result = await ctx.db.$client.query(
        `delete from ${table} where ctid = any(array(select ctid from ${table} where repository_id = $1 limit ${PURGE_BATCH}))`,
        [repositoryId],
      );
      deleted = result.rowCount ?? 0;
    }
  }
  // A validator says that its page is stored, which is not so any more.
  await ctx.db.$client.query("delete from validators where path = $1 or path like $1 || '/%'", [
    `/repositories/${repositoryId}`,
  ]);
  // Others may show it as what they were forked from.
  await ctx.db.transaction(async (tx) => {
    await tx.execute(sql`delete from repositories where id = ${repositoryId}`);
    touch(tx, [repositoryId]);
  });
}

function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

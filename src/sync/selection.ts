import { sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { observe } from "../mirror/observation.ts";
import { mergeObserved } from "../mirror/store.ts";
import type { Fields, Json } from "../mirror/template.ts";
import { enqueueBackfill, QueueUnavailableError } from "../operations/queues.ts";
import type { Answer } from "../upstream/client.ts";

/** Adds wishes of what to mirror: `owner/name` or `owner/*`. Those already there stay as they are. */
export async function addSelections(ctx: Pick<Context, "db" | "clock">, patterns: readonly string[]): Promise<void> {
  for (const pattern of patterns) {
    await ctx.db.execute(
      sql`insert into selections (pattern, added_at) values (${pattern.toLowerCase()}, ${ctx.clock.now().toISOString()}::timestamptz) on conflict do nothing`,
    );
  }
}

/**
 * Finds the repositories that the selections name and begins to mirror those that are not yet. A selection that cannot be
 * resolved keeps its problem in words and is tried again; the others go on.
 */
export async function resolveSelections(ctx: Context): Promise<void> {
  await addSelections(ctx, ctx.config.repositories);
  const { rows } = await ctx.db.$client.query<{ pattern: string }>(
    "select pattern from selections order by added_at, pattern",
  );
  for (const { pattern } of rows) {
    if (!pattern.endsWith("/*") && (await isFollowed(ctx, pattern))) continue;
    const { found, problem } = await resolve(ctx, pattern);
    await ctx.db.execute(sql`update selections set problem = ${problem} where pattern = ${pattern}`);
    for (const repository of found) await beginMirroring(ctx, repository);
  }
}

/** The user whose token mirrors upstream: who `/user` answers as to our own callers. Answers the user's id. */
export async function readViewer(ctx: Context): Promise<number> {
  const answer = await ctx.upstream.get("/user", { priority: "caller" });
  if (answer.kind !== "ok") throw new Error("Upstream does not say whose token UPSTREAM_TOKEN is");
  const user = answer.body as Fields;
  await ctx.db.transaction((tx) =>
    mergeObserved(tx, observe("user", user, { api: ctx.config.upstreamUrl, seenAt: answer.seenAt, read: true })),
  );
  return user.id as number;
}

interface Found {
  representation: Fields;
  seenAt: Date;
}

async function resolve(ctx: Context, pattern: string): Promise<{ found: Found[]; problem: string | null }> {
  const [owner = "", name = ""] = pattern.split("/");
  return name === "*" ? resolveOwner(ctx, owner) : resolveOne(ctx, pattern, `/repos/${owner}/${name}`);
}

async function resolveOne(
  ctx: Context,
  pattern: string,
  path: string,
): Promise<{ found: Found[]; problem: string | null }> {
  const answer = await ctx.upstream.get(path, { priority: "catch-up" });
  switch (answer.kind) {
    case "ok":
      return { found: [{ representation: answer.body as Fields, seenAt: answer.seenAt }], problem: null };
    case "moved":
      if (answer.location?.startsWith("/repositories/")) return resolveOne(ctx, pattern, answer.location);
      return { found: [], problem: `upstream says that ${pattern} has moved, and not where to` };
    case "missing":
      return {
        found: [],
        problem: `upstream answers ${answer.status} (${answer.message}): check the name, and that the token may see it`,
      };
    case "unchanged":
      throw new Error("Upstream answers 304 to what was not asked conditionally");
    default:
      return answer satisfies never;
  }
}

async function resolveOwner(ctx: Context, owner: string): Promise<{ found: Found[]; problem: string | null }> {
  for (const first of [`/orgs/${owner}/repos?per_page=100`, `/users/${owner}/repos?per_page=100`]) {
    const found = await readRepositories(ctx, first);
    if (found) return { found, problem: null };
  }
  return { found: [], problem: `upstream knows no organisation and no user ${owner}` };
}

async function readRepositories(ctx: Context, first: string): Promise<Found[] | null> {
  const found: Found[] = [];
  for (let path: string | null = first; path !== null; ) {
    const answer: Answer = await ctx.upstream.get(path, { priority: "catch-up" });
    if (answer.kind !== "ok") return null;
    found.push(...(answer.body as Fields[]).map((representation) => ({ representation, seenAt: answer.seenAt })));
    path = answer.links.next ?? null;
  }
  return found;
}

async function beginMirroring(ctx: Context, { representation, seenAt }: Found): Promise<void> {
  const repositoryId = representation.id as number;
  const isNew = await ctx.db.transaction(async (tx) => {
    await mergeObserved(
      tx,
      observe("repository", representation as Json, { api: ctx.config.upstreamUrl, seenAt, read: true }),
    );
    // One that was removed here, or deleted and restored at upstream, begins anew.
    const { rowCount } = await tx.execute(sql`insert into repository_syncs (repository_id, state, added_at)
      values (${repositoryId}, 'backfilling', ${ctx.clock.now().toISOString()}::timestamptz)
      on conflict (repository_id) do update set state = 'backfilling', problem = null where repository_syncs.state = 'gone'`);
    const isNew = (rowCount ?? 0) > 0;
    if (isNew) await tx.execute(sql`delete from backfill_phases where repository_id = ${repositoryId}`);
    return isNew;
  });
  if (!isNew) return;
  try {
    await enqueueBackfill(ctx, { repositoryId });
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error; // The scheduler queues every backfill that has no job.
  }
}

async function isFollowed(ctx: Pick<Context, "db">, fullName: string): Promise<boolean> {
  const { rows } = await ctx.db.$client.query(
    "select from repositories r join repository_syncs s on s.repository_id = r.id where lower(r.full_name) = $1 and s.state <> 'gone'",
    [fullName],
  );
  return rows.length > 0;
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
  const { rows } = await ctx.db.$client.query<{ id: string; full_name: string }>(
    "select r.id, r.full_name from repositories r join repository_syncs s on s.repository_id = r.id where lower(r.full_name) like $1 and ($2 or s.state <> 'gone')",
    [like, purge],
  );
  await ctx.db.$client.query("delete from selections where pattern = $1", [name]);
  for (const { id } of rows) {
    await ctx.db.$client.query(
      "update repository_syncs set state = 'gone', problem = 'removed here' where repository_id = $1",
      [id],
    );
    if (purge) await purgeRepository(ctx, Number(id));
  }
  return rows.map((row) => row.full_name);
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
  await ctx.db.$client.query("delete from repositories where id = $1", [repositoryId]);
}

function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

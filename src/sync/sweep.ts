import { createHash } from "node:crypto";
import { sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Transaction } from "../mirror/store.ts";
import { enqueueCatchUp } from "../operations/queues.ts";
import type { Answer } from "../upstream/client.ts";
import { saveValidator, type Validator } from "../upstream/validators.ts";
import { alone } from "./alone.ts";

/** Up to so many repositories each is simply caught up with at every interval; above, sweeps say where it is needed. */
export const SMALL_FLEET = 20;

/** GitHub docs: `nodes` takes a hundred ids; without connections a query is a point, however many of them it has. */
const IDS_A_FIELD = 100;
const FIELDS_A_QUERY = 5;
/** How many repositories are probed at once. */
const PROBES_AT_ONCE = 8;
/** How long a repository whose webhooks were lost is asked more often. */
const SUSPECTED_MS = 3_600_000;
/** A webhook that came so long before the last sweep may have told of what that one was too early to see. */
const TOLD_WITHIN_MS = 60_000;

interface Swept {
  id: number;
  nodeId: string;
  /** What the last sweep saw, and when; null: there was none. */
  shown: Shown | null;
  sweptAt: Date | null;
}

/** What moves when a repository does. */
interface Shown {
  nameWithOwner: string;
  updatedAt: string;
  pushedAt: string | null;
  isArchived: boolean;
  isPrivate: boolean;
  /** A digest of each probed list. */
  lists: (string | null)[];
}

/**
 * Asks about all repositories that are due what moves when they do, and for a catch-up of those that moved. The
 * repositories themselves are asked for by GraphQL, a point for five hundred; their issues, pull requests and comments by
 * the first rows of a list in the order of changes, conditionally, which costs nothing while it stays the same.
 */
export async function sweep(ctx: Context, signal?: AbortSignal): Promise<{ swept: number; changed: number }> {
  return (await alone(ctx, "sweep", () => sweepDue(ctx, signal))) ?? { swept: 0, changed: 0 };
}

async function sweepDue(ctx: Context, signal: AbortSignal | undefined): Promise<{ swept: number; changed: number }> {
  const due = await findDue(ctx);
  let changed = 0;
  for (let start = 0; start < due.length; start += IDS_A_FIELD * FIELDS_A_QUERY) {
    const some = due.slice(start, start + IDS_A_FIELD * FIELDS_A_QUERY);
    const { shown, unclear } = await readShown(ctx, some);
    for (let next = 0; next < some.length; next += PROBES_AT_ONCE) {
      if (signal?.aborted) return { swept: start + next, changed };
      const outcomes = await Promise.all(
        some.slice(next, next + PROBES_AT_ONCE).map((one) => sweepOne(ctx, one, shown.get(one.id) ?? null, unclear)),
      );
      changed += outcomes.filter(Boolean).length;
    }
  }
  await enqueueChanged(ctx);
  return { swept: due.length, changed };
}

async function findDue(ctx: Context): Promise<Swept[]> {
  const now = ctx.clock.now().getTime();
  const { sweepIntervalMs } = ctx.config;
  // Half a tick of tolerance: a schedule is never on the moment.
  const slack = sweepIntervalMs / 8;
  const { rows } = await ctx.db.$client.query<{
    id: string;
    node_id: string;
    shown: string | null;
    swept_at: Date | null;
  }>(
    `select r.id, r.node_id, w.shown, w.swept_at from repository_syncs s join repositories r on r.id = s.repository_id
      left join sweeps w on w.repository_id = s.repository_id
      where s.state = 'live' and r.node_id is not null
        and (w.swept_at is null or w.swept_at <= $1 or (w.untold_at > $2 and w.swept_at <= $3)) order by r.id`,
    [
      new Date(now - sweepIntervalMs + slack),
      new Date(now - SUSPECTED_MS),
      new Date(now - sweepIntervalMs / 4 + slack),
    ],
  );
  return rows.map((row) => ({
    id: Number(row.id),
    nodeId: row.node_id,
    sweptAt: row.swept_at,
    shown: row.shown === null ? null : JSON.parse(row.shown),
  }));
}

interface Answered extends Omit<Shown, "lists"> {
  databaseId: number;
}

/** `unclear`: something could not be resolved, so that an absent repository is not known to be absent. */
async function readShown(ctx: Context, some: Swept[]): Promise<{ shown: Map<number, Shown>; unclear: boolean }> {
  const groups = Array.from({ length: Math.ceil(some.length / IDS_A_FIELD) }, (_, index) =>
    some.slice(index * IDS_A_FIELD, (index + 1) * IDS_A_FIELD),
  );
  const document = `query(${groups.map((_, index) => `$i${index}: [ID!]!`).join(", ")}) {
    rateLimit { cost limit nodeCount remaining resetAt used }
    ${groups.map((_, index) => `n${index}: nodes(ids: $i${index}) { ... on Repository { databaseId nameWithOwner updatedAt pushedAt isArchived isPrivate } }`).join("\n")} }`;
  const variables = Object.fromEntries(groups.map((group, index) => [`i${index}`, group.map(({ nodeId }) => nodeId)]));
  const { data, errors } = await ctx.upstream.graphql<Record<string, unknown>>(document, variables, {
    priority: "catch-up",
  });
  const shown = new Map<number, Shown>();
  for (const index of groups.keys()) {
    for (const one of (data[`n${index}`] ?? []) as (Answered | null)[]) {
      if (!one) continue;
      const { databaseId, nameWithOwner, updatedAt, pushedAt, isArchived, isPrivate } = one;
      shown.set(databaseId, { nameWithOwner, updatedAt, pushedAt, isArchived, isPrivate, lists: [] });
    }
  }
  return { shown, unclear: errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN") };
}

// More rows than one would need: what moved in between is seen as well where many move at once.
const PROBES = [
  "issues?direction=desc&per_page=30&sort=updated&state=all",
  "issues/comments?direction=desc&per_page=30&sort=updated",
  "pulls/comments?direction=desc&per_page=30&sort=updated",
] as const;

/** Answers whether it moved. What was asked and what that says of it are stored together. */
async function sweepOne(ctx: Context, one: Swept, shown: Shown | null, unclear: boolean): Promise<boolean> {
  const now = ctx.clock.now();
  if (!shown && unclear) return false;
  const validators: Validator[] = [];
  const lists: (string | null)[] = [];
  for (const [index, probe] of shown ? PROBES.entries() : []) {
    const answer = await ctx.upstream.get(`/repositories/${one.id}/${probe}`, {
      priority: "catch-up",
      conditional: true,
      isPageAlone: true,
    });
    if (answer.kind === "ok" && answer.validator) validators.push(answer.validator);
    lists[index] = answer.kind === "unchanged" ? (one.shown?.lists[index] ?? null) : digestOf(answer);
  }
  const seen: Shown | null = shown && { ...shown, lists };
  const hasMoved = !seen || JSON.stringify(seen) !== JSON.stringify(one.shown);
  await ctx.db.transaction(async (tx) => {
    for (const validator of validators) await saveValidator(tx, validator);
    await remember(tx, one, seen, hasMoved ? now : null, now);
  });
  return hasMoved;
}

/** null: the list is not shown, which is worth a catch-up only when it was before. */
function digestOf(answer: Answer): string | null {
  if (answer.kind !== "ok") return null;
  return createHash("sha256").update(JSON.stringify(answer.body)).digest("base64url");
}

async function remember(
  tx: Transaction,
  one: Swept,
  shown: Shown | null,
  changedAt: Date | null,
  now: Date,
): Promise<void> {
  const at = (moment: Date | null) => moment?.toISOString() ?? null;
  await tx.execute(sql`insert into sweeps (repository_id, shown, swept_at, changed_at)
    values (${one.id}, ${JSON.stringify(shown)}, ${at(now)}::timestamptz, ${at(changedAt)}::timestamptz)
    on conflict (repository_id) do update set shown = excluded.shown, swept_at = excluded.swept_at,
      changed_at = coalesce(excluded.changed_at, sweeps.changed_at)`);
  // The first sweep finds everything new, and so tells nothing of the webhooks.
  if (changedAt === null || one.sweptAt === null) return;
  const toldSince = new Date(one.sweptAt.getTime() - TOLD_WITHIN_MS);
  await tx.execute(sql`update sweeps set untold_at = ${at(now)}::timestamptz where repository_id = ${one.id}
    and not exists (select from deliveries d where d.repository_id = ${one.id} and d.received_at > ${at(toldSince)}::timestamptz)`);
}

/** Asks for a catch-up wherever the last one began before the change was found: what Redis forgot is asked for again. */
async function enqueueChanged(ctx: Context): Promise<void> {
  const { rows } = await ctx.db.$client.query<{ repository_id: string }>(
    `select w.repository_id from sweeps w join repository_syncs s using (repository_id)
      where s.state = 'live' and w.changed_at is not null and (s.confirmed_at is null or s.confirmed_at <= w.changed_at)`,
  );
  for (const { repository_id } of rows) await enqueueCatchUp(ctx, { repositoryId: Number(repository_id) });
}

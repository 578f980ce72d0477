import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf, parseStored, wholeOf } from "../../json.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import type { Shard } from "../../queues/jobs.ts";
import { enqueueAudits } from "../../queues/queues.ts";
import { inHalves } from "../../upstream/client/bearable-sizes.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { asSent, list, nullable, object, optional, text, truth, whole } from "../../upstream/protocol/field-readers.ts";
import { IDS_A_FIELD, RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import type { CredentialWait } from "../problems/causes.ts";
import { eachAlone } from "../problems/isolated.ts";
import { isInShard } from "../turns/shards.ts";
import { digestOf, type End, judge } from "./list-ends.ts";
import { keptCounts } from "./our-counts.ts";
import { figuresAfter, isSweepDue, isTold, noteUntold, type RepositoryFigures } from "./sweep-due.ts";
import { EXPLAINED } from "./unexplained.ts";

/** GitHub docs: without connections a query is a point, however many fields it has. */
const FIELDS_A_QUERY = 10;
/** GitHub docs: a connection in each is a request each, and requests are divided by a hundred and rounded. */
const CONNECTIONS_A_POINT = 145;
/** The milestones that changed last. One is not enough, because several may change within the same second. */
const MILESTONES = `milestones(first: 5, orderBy: { field: UPDATED_AT, direction: DESC }) {
  totalCount nodes { number title description state dueOn updatedAt } }`;
interface DueRepository {
  id: number;
  nodeId: string;
  /** The figures of the last sweep. Null: never asked for, or not shown. */
  shown: RepositoryFigures | null;
  shownAt: Date | null;
  /** How many milestones we have. 0 if the sweep does not ask for milestones. */
  milestones: number;
}

/**
 * Asks GraphQL for the own fields of repositories that are due. Changed ones are noted, and added to `changed`. If the
 * count of milestones needs it, an audit is asked for. Answers why some have to wait.
 */
export async function sweepRepositories(
  ctx: Context,
  changed: Set<number>,
  { shard, withMilestones, signal }: { shard: Shard; withMilestones: boolean; signal?: AbortSignal | undefined },
): Promise<CredentialWait | null> {
  const due = await findDue(ctx, shard, withMilestones);
  const byId = new Map(due.map((one) => [one.id, one]));
  // Each group is asked about with one credential that sees all of it. An App's installation sees only its own
  // repositories.
  const groups = await ctx.upstream.groups([...byId.keys()]);
  const size = withMilestones ? CONNECTIONS_A_POINT : IDS_A_FIELD * FIELDS_A_QUERY;
  const dueIn = (ids: number[]) => ids.flatMap((id) => byId.get(id) ?? []);
  const batchesOfAll = groups.flatMap((ids, group) => batches(dueIn(ids), size).map((some) => ({ group, some })));
  const answered: { one: DueRepository; fault: UpstreamUnavailableError | null }[] = [];
  const waiting = await eachAlone(ctx, batchesOfAll, {
    // A chunk is named by its first repository, which gets the problem if the whole question fails.
    subjectOf: ({ some }) => ({ task: "sweep", key: `from ${some[0]?.id}`, repositoryId: some[0]?.id ?? null }),
    groupOf: ({ group }) => group,
    signal,
    work: async ({ some }) => {
      const askedAt = ctx.clock.now();
      const answer = await readShown(ctx, some, withMilestones);
      for (const id of await storeFigures(ctx, some, { ...answer, askedAt })) changed.add(id);
      for (const one of some) answered.push({ one, fault: answer.faults.get(one.id) ?? null });
    },
  });
  await eachAlone(ctx, answered, {
    subjectOf: ({ one: { id } }) => ({ task: "sweep", key: `fields of ${id}`, repositoryId: id }),
    work: async ({ fault }) => {
      if (fault) throw fault;
    },
  });
  return waiting;
}

/** Answers which have changed. */
async function storeFigures(
  ctx: Context,
  some: readonly DueRepository[],
  { shown, faults, unclear, askedAt }: ShownRepositories & { askedAt: Date },
): Promise<number[]> {
  const seenAt = ctx.clock.now();
  const rows: { one: DueRepository; shown: RepositoryFigures | null }[] = [];
  const amiss: number[] = [];
  for (const one of some) {
    const figures = shown.get(one.id);
    const answer = figures && figuresAfter(one.shown, figures, askedAt);
    // Upstream neither showed the repository nor called it absent, so the next sweep asks again.
    if (!answer && (unclear || faults.has(one.id))) continue;
    if (answer?.milestones) {
      answer.milestones.ours = one.milestones;
      if (judge(answer.milestones, one.shown?.milestones, seenAt)) amiss.push(one.id);
    }
    rows.push({ one, shown: answer ?? null });
  }
  const moved = rows.filter((row) => signOf(row.shown) !== signOf(row.one.shown) || row.one.shownAt === null);
  await ctx.db.transaction(async (tx) => {
    const ids = rows.map(({ one }) => one.id);
    const shown = rows.map((row) => row.shown && JSON.stringify(row.shown));
    await tx.query(sql`
        insert into sweeps (repository_id, shown, shown_at, changed_at)
          select id, shown, ${askedAt}::timestamptz,
              case when id = any(${moved.map(({ one }) => one.id)}::bigint[]) then ${seenAt}::timestamptz end
            from unnest(${ids}::bigint[], ${shown}::text[]) as x(id, shown) order by id
          on conflict (repository_id) do update set shown = excluded.shown, shown_at = excluded.shown_at,
            changed_at = coalesce(excluded.changed_at, sweeps.changed_at)`);
    const sinces = moved.flatMap(({ one }) => (one.shownAt ? [{ id: one.id, since: one.shownAt }] : []));
    await noteUntold(tx, sinces, seenAt);
  });
  await enqueueAudits(ctx, amiss);
  return moved.map(({ one }) => one.id);
}

/** A text that stays the same while upstream shows no change. Pure. */
function signOf(shown: RepositoryFigures | null): string {
  return JSON.stringify(shown && { ...shown, milestones: shown.milestones?.digest, archivedSince: null });
}

export function batches<One>(due: readonly One[], size: number): One[][] {
  return Array.from({ length: Math.ceil(due.length / size) }, (_, at) => due.slice(at * size, (at + 1) * size));
}

async function findDue(ctx: Context, shard: Shard, withMilestones: boolean): Promise<DueRepository[]> {
  const now = ctx.clock.now();
  const counted = sql`coalesce((${keptCounts}::json->>'milestones')::int, (select count(*) from milestones t
    where t.repository_id = s.repository_id and t.deleted_at is null and ${seenBefore(sql`t.seen_at`, { readAt: now, now })}))`;
  // Unlike the lists, this question is never free, and repositories change less often than their lists.
  const due = isSweepDue(ctx, sql`w.shown_at`, ctx.config.sweepIntervalMs * 1.25);
  const rows = await ctx.db.query<Omit<DueRepository, "shown"> & { shown: string | null }>(sql`
    select r.id, r.node_id as "nodeId", w.shown, w.shown_at as "shownAt",
        ${withMilestones ? counted : sql`0`} as milestones
      from repository_syncs s join repositories r on r.id = s.repository_id and ${isInShard(sql`r.id`, shard)}
      left join sweeps w on w.repository_id = s.repository_id and ${isInShard(sql`w.repository_id`, shard)}
      where ${isInShard(sql`s.repository_id`, shard)} and s.state = 'live' and r.node_id is not null and not ${isTold(ctx)} and ${due} order by r.id`);
  return rows.map((row) => ({ ...row, shown: row.shown === null ? null : parseStored<RepositoryFigures>(row.shown) }));
}

/** A repository's own fields. */
export const FIGURES = "nameWithOwner updatedAt pushedAt isArchived isPrivate";

export const readFigures = object({
  nameWithOwner: text,
  updatedAt: text,
  pushedAt: nullable(text),
  isArchived: truth,
  isPrivate: truth,
});
const readMilestones = optional(object({ totalCount: whole, nodes: list(asSent) }));

interface ShownRepositories {
  shown: Map<number, RepositoryFigures>;
  /** Repositories that upstream showed in another shape than its schema says. */
  faults: Map<number, UpstreamUnavailableError>;
  /** Something could not be resolved, so that an absent repository is not known to be absent. */
  unclear: boolean;
}

async function readShown(ctx: Context, some: DueRepository[], withMilestones: boolean): Promise<ShownRepositories> {
  const answers = await inHalves(some, (part) => readShownAtOnce(ctx, part, withMilestones));
  return {
    shown: new Map(answers.flatMap(({ shown }) => [...shown])),
    faults: new Map(answers.flatMap(({ faults }) => [...faults])),
    unclear: answers.some(({ unclear }) => unclear),
  };
}

async function readShownAtOnce(
  ctx: Context,
  some: readonly DueRepository[],
  withMilestones: boolean,
): Promise<ShownRepositories> {
  const groups = batches(some, IDS_A_FIELD);
  const document = `query(${groups.map((_, index) => `$i${index}: [ID!]!`).join(", ")}) {
    ${RATE_LIMIT}
    ${groups.map((_, index) => `n${index}: nodes(ids: $i${index}) { ... on Repository { databaseId ${FIGURES} ${withMilestones ? MILESTONES : ""} } }`).join("\n")} }`;
  const variables = Object.fromEntries(groups.map((group, index) => [`i${index}`, group.map(({ nodeId }) => nodeId)]));
  const { data, errors } = await ctx.upstream.graphql(document, variables, {
    priority: "catch-up",
    ...(some[0] ? { repository: some[0].id } : {}),
  });
  const shown = new Map<number, RepositoryFigures>();
  const faults = new Map<number, UpstreamUnavailableError>();
  let unclear = errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN");
  for (const index of groups.keys()) {
    for (const one of nullable(list(asSent))(data[`n${index}`], "nodes") ?? []) {
      if (one === null) continue;
      const { databaseId, milestones } = objectOf(one);
      const id = wholeOf(databaseId);
      // Upstream leaves out milestones when it runs out of time. Its schema lets it leave out the id as well.
      if (id === null || (withMilestones && (milestones ?? null) === null)) unclear = true;
      else {
        const figures = repositoryFigures(one);
        if (figures instanceof Error) faults.set(id, figures);
        else shown.set(id, figures);
      }
    }
  }
  return { shown, faults, unclear };
}

function repositoryFigures(repository: Json): RepositoryFigures | UpstreamUnavailableError {
  try {
    const milestones = readMilestones(objectOf(repository).milestones, "milestones");
    return { ...readFigures(repository, "nodes"), ...(milestones ? { milestones: endOf(milestones) } : {}) };
  } catch (error) {
    if (error instanceof UpstreamUnavailableError) return error;
    throw error;
  }
}

function endOf({ totalCount, nodes }: { totalCount: number; nodes: Json[] }): End {
  return { digest: digestOf(nodes), theirs: totalCount, ours: 0, ...EXPLAINED };
}

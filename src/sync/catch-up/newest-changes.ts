import type { Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { type Json, objectOf } from "../../json.ts";
import { fittingTime } from "../../mirror/store/fitting.ts";
import { CLOCKS_APART_MS } from "../../mirror/store/merge-rule.ts";
import {
  asSent,
  eachOf,
  list,
  nullable,
  object,
  type Read,
  text,
  truth,
  whole,
} from "../../upstream/protocol/field-readers.ts";

/** The newest changes that one look shows of each list. A repository with more of them between two looks is read. */
export const SHOWN = 50;
const LABELS = 100;
const MILESTONES = 20;

const BY_CHANGE = "orderBy: { field: UPDATED_AT, direction: DESC }";

/**
 * The part of a query that shows a repository's newest changes. Upstream charges a request for each of the four
 * connections, and a point per hundred requests.
 */
export const NEWEST_CHANGES = `
  issues(first: ${SHOWN}, ${BY_CHANGE}) { totalCount nodes { number updatedAt closed closedAt locked } }
  pullRequests(first: ${SHOWN}, ${BY_CHANGE}) { totalCount nodes { number updatedAt closed closedAt locked merged } }
  milestones(first: ${MILESTONES}, ${BY_CHANGE}) { totalCount nodes { number updatedAt } }
  labels(first: ${LABELS}, orderBy: { field: CREATED_AT, direction: DESC }) { totalCount
    nodes { name color description updatedAt } }`;

const changed = { number: whole, updatedAt: text };
const states = { ...changed, closed: truth, closedAt: nullable(text), locked: truth };

const readNewest = object({
  issues: object({ totalCount: whole, nodes: eachOf(object(states)) }),
  pullRequests: object({ totalCount: whole, nodes: eachOf(object({ ...states, merged: truth })) }),
  milestones: object({ totalCount: whole, nodes: eachOf(object(changed)) }),
  labels: object({
    totalCount: whole,
    nodes: eachOf(object({ name: text, color: text, description: nullable(text), updatedAt: nullable(text) })),
  }),
});

/**
 * The part of a query that shows how many reviews a pull request has, which no other time or number shows. Upstream
 * charges a request for each.
 */
export const REVIEW_COUNT = "number updatedAt repository { databaseId } reviews { totalCount }";

const readReviewed = object({
  ...changed,
  repository: object({ databaseId: whole }),
  reviews: object({ totalCount: whole }),
});

export type ReviewedPull = Read<typeof readReviewed>;

/**
 * Those of a list of nodes that are pull requests of the repository still.
 * @throws UpstreamUnavailableError when one has another shape
 */
export function reviewedPulls(nodes: Json | undefined, repositoryId: number): ReviewedPull[] {
  return (nullable(list(asSent))(nodes ?? null, "pulls") ?? [])
    .filter((node) => node !== null && Object.keys(objectOf(node)).length > 0)
    .map((node) => readReviewed(node, "pulls"))
    .filter(({ repository }) => repository.databaseId === repositoryId);
}

/** What upstream shows of the newest changes of a repository. */
export type NewestChanges = Read<typeof readNewest>;

/** @throws UpstreamUnavailableError when it has another shape */
export function newestChanges(repository: Json): NewestChanges {
  return readNewest(repository, "nodes");
}

/** A change that is younger, by upstream's clock, may still be told. */
const TOLD_WITHIN_MS = 60_000;

/** Up to this moment, by upstream's clock, webhooks must have told all that an answer shows. */
export function toldUntil(upstreamNow: Date): Date {
  return new Date(upstreamNow.getTime() - TOLD_WITHIN_MS);
}

type ShownList = keyof NewestChanges;

/** What one look found in a repository. */
export interface HeldChanges {
  /** Rows that the mirror lacks, or has an older state of. */
  unheld: readonly UnheldRow[];
  /** How many rows each list has here more than at upstream. */
  surplus: Readonly<Record<ShownList, number>>;
  /** Changes may be older than those shown. */
  isBeyond: boolean;
}

export interface LookedAt {
  repositoryId: number;
  newest: NewestChanges;
  reviewed: readonly ReviewedPull[];
  /** As in `toldUntil`, at the last look that found all held. */
  heldUntil: Date;
}

/**
 * Compares upstream's newest changes with the rows of the mirror, for all repositories with one statement each. Whatever
 * the mirror holds was told, or read: nothing more has to be asked about it.
 * @param until as in `toldUntil`: younger changes are left to the next look
 */
export async function findUnheld(
  db: Queries,
  looked: readonly LookedAt[],
  until: Date,
): Promise<Map<number, HeldChanges>> {
  const unheld = Map.groupBy(
    await findUnheldRows(
      db,
      looked.flatMap((one) => rowsShown(one, until)),
    ),
    ({ repositoryId }) => repositoryId,
  );
  const counts = new Map((await countOurs(db, looked, until)).map((row) => [row.repositoryId, row]));
  return new Map(
    looked.map(({ repositoryId, newest, heldUntil }) => {
      const ours = counts.get(repositoryId);
      const surplusOf = (name: ShownList) => surplus(ours?.[name] ?? [0, 0], newest[name].totalCount);
      return [
        repositoryId,
        {
          unheld: unheld.get(repositoryId) ?? [],
          surplus: {
            issues: surplusOf("issues"),
            pullRequests: surplusOf("pullRequests"),
            milestones: surplusOf("milestones"),
            labels: surplusOf("labels"),
          },
          isBeyond: isBeyond(newest.issues, SHOWN, heldUntil) || isBeyond(newest.pullRequests, SHOWN, heldUntil),
        },
      ];
    }),
  );
}

/** Whether the list may have a change since `heldUntil` that is not among those shown. Pure. */
function isBeyond({ nodes }: NewestChanges["issues" | "pullRequests"], shown: number, heldUntil: Date): boolean {
  const oldest = nodes.findLast((node) => node !== null);
  return nodes.length === shown && oldest !== undefined && oldest !== null && new Date(oldest.updatedAt) > heldUntil;
}

/**
 * How many rows we have more. A replica of upstream's may not know our youngest rows, and a new one may be on its way to
 * us. Pure.
 */
function surplus([settled, all]: OurCount, theirs: number): number {
  if (settled > theirs) return settled - theirs;
  return Math.min(0, all - theirs);
}

/** A row that upstream shows, and as much of its state as says whether the mirror's row is older. */
export interface ShownRow {
  /** The repository's id. */
  r: number;
  kind: "issue" | "pull_request" | "milestone" | "label" | "issue_comment" | "review_comment";
  /** The number of an issue, pull request or milestone. */
  n?: number;
  /** The id of a comment. */
  id?: number;
  /** Its `updated_at`. */
  at?: string;
  name?: string;
  color?: string;
  description?: string | null;
  /**
   * Of an issue or a pull request. A second change of the same second moves no time, so its webhook would not be missed
   * otherwise.
   */
  isClosed?: boolean;
  /** When it was closed. Absent: it is open. */
  closedAt?: string;
  isLocked?: boolean;
  isMerged?: boolean;
  /** How many reviews a pull request has. Absent: upstream was not asked. */
  reviews?: number;
  /** How many open and closed issues a milestone has. */
  open?: number;
  closed?: number;
}

export interface UnheldRow {
  repositoryId: number;
  /** Names the row and its state. */
  row: string;
  /** Upstream says when it changed. */
  isTimed: boolean;
  /** The row as it was shown. */
  shown: ShownRow;
}

/** A row's `updated_at` as its column would hold it. A row without one counts as changed. Pure. */
export function comparable(updatedAt: string | null): string {
  return fittingTime(updatedAt) ?? "infinity";
}

function stateShown({
  number: n,
  updatedAt,
  closed,
  closedAt,
  locked,
}: NonNullable<NewestChanges["issues"]["nodes"][number]>) {
  const at = closed ? fittingTime(closedAt) : null;
  return { n, at: comparable(updatedAt), isClosed: closed, ...(at === null ? {} : { closedAt: at }), isLocked: locked };
}

function rowsShown({ repositoryId: r, newest, reviewed }: LookedAt, until: Date): ShownRow[] {
  const { issues, pullRequests, milestones, labels } = newest;
  const isSettled = ({ updatedAt }: { updatedAt: string }) => new Date(updatedAt) <= until;
  const settled = <Node extends { updatedAt: string }>({ nodes }: { nodes: readonly (Node | null)[] }): Node[] =>
    nodes.flatMap((node) => (node !== null && isSettled(node) ? [node] : []));
  return [
    ...settled(issues).map((issue): ShownRow => ({ r, kind: "issue", ...stateShown(issue) })),
    ...settled(pullRequests).map((pull): ShownRow => {
      return { r, kind: "pull_request", ...stateShown(pull), isMerged: pull.merged };
    }),
    ...settled({ nodes: reviewed }).map(({ number: n, updatedAt, reviews: { totalCount } }): ShownRow => {
      return { r, kind: "pull_request", n, at: comparable(updatedAt), reviews: totalCount };
    }),
    ...settled(milestones).map(({ number: n, updatedAt }): ShownRow => {
      return { r, kind: "milestone", n, at: comparable(updatedAt) };
    }),
    ...labels.nodes.flatMap((label): ShownRow[] => {
      if (label === null) return [];
      const { updatedAt, ...shown } = label;
      if (updatedAt === null) return [{ r, kind: "label", ...shown }];
      return new Date(updatedAt) <= until ? [{ r, kind: "label", ...shown, at: comparable(updatedAt) }] : [];
    }),
  ];
}

/** A change moves both sides of a pull request, mostly in the same second (106 of 109 in a recorded history). */
const SIDES_APART = sql`interval '5 seconds'`;

/** An `updated_at` lies ahead if it is this much later than its row was seen, as in `orderedAt`. */
export const AHEAD = sql.script(`interval '${CLOCKS_APART_MS} milliseconds'`);

/**
 * Whether the row `alias` has the change that upstream dates `at`. A row whose own time lies ahead may lack any change of
 * another time.
 */
function hasChange(alias: SQL, at = sql`x.at`): SQL {
  return sql`(${alias}.updated_at >= ${at}
    and (${alias}.updated_at <= ${alias}.seen_at + ${AHEAD} or ${alias}.updated_at = x.at))`;
}

/** Whether the row `alias` is in the state that upstream shows, if it is the version that upstream shows. */
function hasState(alias: SQL, isMerged = sql`x."isMerged"`): SQL {
  return sql`(x."isClosed" is null or ${alias}.updated_at <> x.at or (${alias}.state = 'closed') = x."isClosed"
    and (x."closedAt" is null or ${alias}.closed_at = x."closedAt")
    and coalesce(${alias}.locked, false) = x."isLocked" and (x."isMerged" is null or (${isMerged}) = x."isMerged"))`;
}

/** Whether a mark `d` asks for all of its resource. One about some keys finds no lost change of others. */
const IS_WHOLE = sql`(d.keys is null or d.keys_at < d.asked_at)`;

/** Whether a mark `d` asks for what says in which state a row is, and the row of `table` lacks nothing else. */
function isOfState(table: SQL): SQL {
  return sql`(d.keys && array['state', 'closed_at', 'locked', 'merged']
    and exists (select from ${table} t where t.repository_id = x.r and t.number = x.n and t.updated_at = x.at))`;
}

/**
 * Those of the rows that the mirror lacks, or has an older state of. Not those that were told and are in doubt: their
 * marks ask for them.
 */
export async function findUnheldRows(db: Queries, shown: readonly ShownRow[]): Promise<UnheldRow[]> {
  // A pull request is in the lists of issues only by its issue side, which has an id of its own.
  return await db.query<UnheldRow>(sql`
    select x.r as "repositoryId", concat_ws(' ', x.kind, x.n, x.id, x.at, x.name, x.color, x.description, x."isClosed", x."closedAt",
          x."isLocked", x."isMerged", x.reviews) as row,
        x.at is not null as "isTimed", json_strip_nulls(to_json(x)) as shown
      from json_to_recordset(${sql.json(shown)}) as x(r bigint, kind text, n bigint, id bigint,
        at timestamptz, name text, color text, description text, open bigint, closed bigint,
        "isClosed" boolean, "closedAt" timestamptz, "isLocked" boolean, "isMerged" boolean, reviews bigint)
      where not case x.kind
        when 'issue' then exists (select from issues i where i.repository_id = x.r and i.number = x.n
          and i.id is not null and i.deleted_at is null and ${hasChange(sql`i`)} and ${hasState(sql`i`)})
        when 'pull_request' then exists (select from pull_requests p
          join issues i on i.repository_id = p.repository_id and i.number = p.number and i.id is not null
            and ${hasChange(sql`i`, sql`x.at - ${SIDES_APART}`)}
          where p.repository_id = x.r and p.number = x.n and p.id is not null and p.deleted_at is null
            and ${hasChange(sql`p`)} and ${hasState(sql`p`, sql`p.merged_at is not null and p.merged is not false`)}
            and (x.reviews is null or x.reviews = (select count(*) from pull_request_reviews v
              where v.repository_id = x.r and v.pull_number = x.n and v.deleted_at is null)))
        when 'milestone' then exists (select from milestones m where m.repository_id = x.r and m.number = x.n
          and m.deleted_at is null and ${hasChange(sql`m`)}
          and (x.open is null or (m.open_issues = x.open and m.closed_issues = x.closed)))
        when 'issue_comment' then exists (select from issue_comments c where c.repository_id = x.r and c.id = x.id
          and c.deleted_at is null and ${hasChange(sql`c`)})
        when 'review_comment' then exists (select from pull_request_review_comments c where c.repository_id = x.r
          and c.id = x.id and c.deleted_at is null and ${hasChange(sql`c`)})
        else exists (select from labels l where l.repository_id = x.r and l.name = x.name and l.deleted_at is null
          and l.color = x.color and l.description is not distinct from x.description)
        end
        and not exists (select from refresh_marks d where d.repository_id = x.r and case x.kind
          when 'label' then d.kind = 'label'
          when 'milestone' then d.kind = 'milestone'
            and d.key = (select m.id from milestones m where m.repository_id = x.r and m.number = x.n)
          when 'pull_request' then d.key = x.n and (d.kind = 'pull_request' and (${IS_WHOLE} or ${isOfState(sql`pull_requests`)})
            or d.kind = 'issue'
              and exists (select from pull_requests p where p.repository_id = x.r and p.number = x.n and p.updated_at >= x.at))
          when 'issue' then d.kind = x.kind and d.key = x.n and (${IS_WHOLE} or ${isOfState(sql`issues`)})
          else d.kind = x.kind and d.key = x.id and ${IS_WHOLE} end)
      order by 1, 2`);
}

/** `settled`: without those that are younger than `until`. */
type OurCount = [settled: number, all: number];

type CountsOfOurs = Record<ShownList, OurCount> & { repositoryId: number };

async function countOurs(db: Queries, looked: readonly LookedAt[], until: Date): Promise<CountsOfOurs[]> {
  const ids = looked.map(({ repositoryId }) => repositoryId);
  const count = (since: string, rows: SQL) => sql`(
    select array[count(*) filter (where ${sql.identifier(since)} <= ${until}), count(*)] from ${rows}
      and repository_id = x.id and deleted_at is null)`;
  return await db.query<CountsOfOurs>(sql`
    select x.id as "repositoryId",
        ${count("created_at", sql`issues where id is not null and not is_pull_request`)} as issues,
        ${count("created_at", sql`pull_requests where id is not null`)} as "pullRequests",
        ${count("created_at", sql`milestones where true`)} as milestones,
        ${count("seen_at", sql`labels where true`)} as labels
      from unnest(${ids}::bigint[]) as x(id)`);
}

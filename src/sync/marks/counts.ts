import { type Queries, type Transaction, together } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { takeTurns } from "../../../db/turns.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { type Mark, nextRound } from "../../mirror/store/marks.ts";
import { findStored } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS, type Stored } from "../../mirror/store/merge-rule.ts";
import { requireNumberIn, type Seen } from "../../mirror/store/observation.ts";
import type { Counting } from "../events/events.ts";

/**
 * A mark for each of these issues that is mirrored, for the next common question.
 * @param counting `toldBy`: the repository whose delivery named the issue. Upstream links only issues of one owner.
 */
export async function marksForCounting(
  tx: Pick<Transaction, "query">,
  counting: readonly (Counting & { toldBy?: number | null })[],
  askedAt: Date,
): Promise<Mark[]> {
  if (counting.length === 0) return [];
  const rows = await tx.query<{ repositoryId: number; number: number; key: Counting["key"] }>(sql`
    select distinct i.repository_id as "repositoryId", i.number, x.key
      from json_to_recordset(${sql.json(counting)}) as x("fullName" text, number integer, key text, "toldBy" bigint)
      join repositories r on folded(r.full_name) = folded(x."fullName") and r.deleted_at is null
        and (x."toldBy" is null or r.owner_id = (select o.owner_id from repositories o where o.id = x."toldBy"))
      join repository_syncs s on s.repository_id = r.id and ${MIRRORED}
      join issues i on i.repository_id = r.id and i.number = x.number and i.deleted_at is null order by 1, 2, 3`);
  const notBefore = nextRound(askedAt, REPLICA_LAG_MS);
  return rows.map(({ repositoryId, number, key }) => ({
    ...{ kind: "issue", repositoryId, key: number, keys: [key], askedAt, notBefore },
  }));
}

/** A pull request, wherever it is known of. */
type PullKey = Pick<ResourceKey, "repositoryId" | "key">;

/** How many comments on their diffs the mirror has, by `repositoryId/number`; those without any are left out. */
export async function countReviewComments(queries: Queries, pulls: readonly PullKey[]): Promise<Map<string, number>> {
  const repositoryIds = pulls.map(({ repositoryId }) => repositoryId);
  const numbers = pulls.map(({ key }) => key);
  const rows = await queries.prepared<{ pull: string; count: number }>(sql`
    select x.r || '/' || x.n as pull, count(*) as count
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(numbers, "integer")}) as x(r, n)
      join pull_request_review_comments c on c.repository_id = x.r and c.pull_number = x.n and c.deleted_at is null group by x.r, x.n`);
  return new Map(rows.map(({ pull, count }) => [pull, count]));
}

/**
 * How comments on diffs change `review_comments` of their pull requests, which their webhooks leave out. Upstream's
 * last count may include comments that we have still to hear of. So a new comment only raises the count, and a deleted
 * one only lowers it. To be called before the comments are merged, in the same transaction.
 */
export async function observeCounts(tx: Transaction, seen: readonly Seen[], now: Date): Promise<Seen[]> {
  const comments = seen.filter(({ kind }) => kind === "review_comment");
  if (comments.length === 0) return [];
  const pulls = Map.groupBy(comments, (comment) => pullName(parentPull(comment)));
  const keys = [...pulls.values()].flatMap(([comment]) => (comment ? [parentPull(comment)] : []));
  // Other transactions that count would not see the comments that this one is about to store.
  await takeTurns(tx, "review comments", [...pulls.keys()]);
  const [counts, storedPulls, storedComments] = await together([
    countReviewComments(tx, keys),
    findStored(tx, "pull_request", keys),
    findStored(tx, "review_comment", comments),
  ]);
  return keys.flatMap((key) => {
    const name = pullName(key);
    const stored = storedPulls.get(name);
    const known = stored?.fields.review_comments;
    if (!stored || typeof known !== "number") return [];
    const changes = [...Map.groupBy(pulls.get(name) ?? [], pullName)].map(([comment, group]) =>
      changeBy(group, storedComments.get(comment)),
    );
    const count = changes.reduce<number>((sum, change) => sum + change, counts.get(name) ?? 0);
    const isNews = (changes.includes(1) && count > known) || (changes.includes(-1) && count < known);
    const shown = seen.filter((one) => one.kind === "pull_request" && pullName(one) === name);
    return isNews ? [countedAs(key, count, stored, shown, now)] : [];
  });
}

/** The change of the count by all sightings of one comment. */
function changeBy(group: Seen[], stored: Stored | undefined): -1 | 0 | 1 {
  const isDeleted = group.some(({ deleted }) => deleted);
  if (!stored) return isDeleted ? 0 : 1;
  return isDeleted && stored.deletedAt === null ? -1 : 0;
}

/**
 * The count, stamped as newer than the stored row and than the payloads around the comments. A payload that shows the
 * count itself keeps its own stamp.
 */
function countedAs(pull: ResourceKey, review_comments: number, stored: Stored, shown: Seen[], now: Date): Seen {
  const known = [stored.stamp, stored.keyStamps.review_comments ?? stored.stamp];
  const around = shown.filter(({ fields }) => !("review_comments" in fields)).map(({ stamp }) => stamp);
  const stamp = {
    updatedAt: Math.max(...[...known, ...around].map(({ updatedAt }) => updatedAt)),
    seenAt: Math.max(now.getTime(), ...known.map(({ seenAt }) => seenAt + 1)),
    read: true,
  };
  return { ...pull, fields: { review_comments }, stamp, deleted: false, extent: "partial", isOurs: true };
}

function pullName({ repositoryId, key }: PullKey): string {
  return `${repositoryId}/${key}`;
}

function parentPull({ kind, repositoryId, fields }: Seen): ResourceKey {
  return { kind: "pull_request", repositoryId, key: requireNumberIn(kind, fields, "pull_request_url") };
}

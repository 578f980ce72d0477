import type { Transaction } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { isObject, type Json, numberOf, objectOf, textOf } from "../../json.ts";
import { type Mark, nextRound } from "../../mirror/store/marks.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { type Observed, observe, type Sighting } from "../../mirror/store/observation.ts";
import { keyIn } from "../../mirror/store/representation.ts";
import type { Counting, RefreshAsk } from "./followed-event.ts";
import type { Payload } from "./payload.ts";

/**
 * Events of links show two issues, perhaps of two repositories. Each repository is told, so the other's issue is left out.
 * @param names the keys of the two in the payload
 */
export function observeLinked(payload: Payload, at: Sighting, names: readonly string[]): Observed[] {
  return names
    .filter((name) => isOwn(payload, name))
    .map((name) => {
      const issue = payload[name] ?? null;
      return observe(
        "issue",
        isOrphan(payload, name) && isObject(issue) ? { ...issue, parent_issue_url: null } : issue,
        at,
      );
    });
}

/** An issue without a parent lacks a key, and only a read shows that. */
export function askLinked(payload: Payload): Omit<RefreshAsk, "repositoryId">[] {
  return isOwn(payload, "sub_issue") && isOrphan(payload, "sub_issue")
    ? [{ kind: "issue", key: keyIn("issue", payload.sub_issue) }]
    : [];
}

/** A sub-issue that was taken from its parent. */
function isOrphan({ action, ...payload }: Payload, name: string): boolean {
  return (
    name === "sub_issue" && action?.endsWith("_removed") === true && !("parent_issue_url" in objectOf(payload[name]))
  );
}

/**
 * Whether the issue belongs to the payload's own repository. A payload may name the repository of the other issue; some
 * leave it out.
 */
function isOwn({ repository, ...payload }: Payload, name: string): boolean {
  if (!isObject(payload[name])) return false;
  const { id, url } = objectOf(repository);
  const given = objectOf(payload[`${name}_repo`]).id;
  return given === undefined ? objectOf(payload[name]).repository_url === url : given === id;
}

const COUNTED: ReadonlySet<string> = new Set(["closed", "reopened", "deleted", "transferred"]);

/** The parent of an issue that was closed, opened again or deleted: no event tells of its summary. */
export function countingParent({ action = "", issue }: Payload): Counting[] {
  const parent = COUNTED.has(action) ? issueAt(objectOf(issue).parent_issue_url) : null;
  return parent ? [{ ...parent, key: "sub_issues_summary" }] : [];
}

/** Whether other issues wait for this one. Only a list at upstream says which. */
export function isBlocking(issue: Json | undefined): boolean {
  return (numberOf(objectOf(objectOf(issue).issue_dependencies_summary).total_blocking) ?? 0) > 0;
}

/**
 * Asks for an issue that was closed or reopened while others wait for it. Its read also reads the waiting issues
 * (`blocked-issues.ts`).
 */
export function askBlocking({ action = "", issue }: Payload): Omit<RefreshAsk, "repositoryId">[] {
  const isMoved = action === "closed" || action === "reopened";
  return isMoved && isBlocking(issue) ? [{ kind: "issue", key: keyIn("issue", issue) }] : [];
}

/** The issue at an address of upstream's API; null: it is no such address. */
export function issueAt(address: Json | undefined): { fullName: string; number: number } | null {
  const [, fullName, number] = /\/repos\/([^/]+\/[^/]+)\/issues\/(\d{1,9})$/.exec(textOf(address) ?? "") ?? [];
  return fullName === undefined ? null : { fullName, number: Number(number) };
}

/** A mark for each of these issues that is mirrored, for the next common question. */
export async function marksForCounting(
  tx: Pick<Transaction, "query">,
  counting: readonly Counting[],
  askedAt: Date,
): Promise<Mark[]> {
  if (counting.length === 0) return [];
  const rows = await tx.query<{ repositoryId: number; number: number; key: Counting["key"] }>(sql`
    select distinct i.repository_id::float8 as "repositoryId", i.number, x.key
      from json_to_recordset(${JSON.stringify(counting)}::json) as x("fullName" text, number integer, key text)
      join repositories r on lower(r.full_name) = lower(x."fullName") and r.deleted_at is null
      join repository_syncs s on s.repository_id = r.id and ${MIRRORED}
      join issues i on i.repository_id = r.id and i.number = x.number and i.deleted_at is null order by 1, 2, 3`);
  const notBefore = nextRound(askedAt, REPLICA_LAG_MS);
  return rows.map(({ repositoryId, number, key }) => ({
    ...{ kind: "issue", repositoryId, key: number, keys: [key], askedAt, notBefore },
  }));
}

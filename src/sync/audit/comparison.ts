import { createHash } from "node:crypto";
import type { Queries, Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import { renderDocuments } from "../../mirror/render/rendering.ts";
import { SharedRows } from "../../mirror/render/shared-rows.ts";
import { findAllStored } from "../../mirror/store/merge.ts";
import {
  goneKeys,
  MERGEABILITY,
  REPLICA_LAG_MS,
  type Stored,
  sameValue,
  VOLATILE,
} from "../../mirror/store/merge-rule.ts";
import type { Observed, Seen } from "../../mirror/store/observation.ts";
import type { Drift } from "./report.ts";

/** Upstream is still computing the mergeability, so a null says nothing. */
export function withoutMergeability(seen: Seen): Seen {
  if (seen.kind !== "pull_request") return seen;
  const known = Object.entries(seen.fields).filter(([key]) => !MERGEABILITY.has(key));
  // Only a single representation proves that missing keys are gone. This one now lacks a key for another reason.
  const extent = seen.extent === "single" ? "whole" : seen.extent;
  return { ...seen, fields: Object.fromEntries(known), extent };
}

export interface Comparison {
  /** The differences. A value that the mirror saw when the read began, or later, is no drift. */
  drift: Drift[];
  /** Resources that differ in such a value. Only a later read can tell whether they are right. */
  changing: ResourceKey[];
  /** Whether the mirror stores every value exactly as it was read. */
  isEqual: boolean;
}

/**
 * Whether a value may have been seen later than the read shows it. The read may have been answered by a replica that
 * lags behind it. Then the two may differ, and nothing is wrong.
 */
function mayBeNewer({ stamp, keyStamps }: Stored, field: string, { stamp: { seenAt } }: Seen): boolean {
  return (keyStamps[field] ?? stamp).seenAt + REPLICA_LAG_MS >= seenAt;
}

/** Compares a read with the stored rows. `withParts`: partial observations count as well. */
export async function compareWithStored(
  tx: Transaction,
  { seen }: Observed,
  { withParts = false }: { withParts?: boolean } = {},
): Promise<Comparison> {
  const drift: Drift[] = [];
  const changing: ResourceKey[] = [];
  let isEqual = true;
  const compared = seen.filter((one) => withParts || one.extent !== "partial");
  const storedOf = await findAllStored(tx, compared);
  for (const { kind } of resources) {
    for (const one of compared.filter((other) => other.kind === kind)) {
      const { found, same, isChanging } = compareOne(one, storedOf(one));
      isEqual &&= same;
      if (isChanging) changing.push(one);
      if (found && !drift.some((other) => other.kind === kind && other.key === one.key)) drift.push(found);
    }
  }
  return { drift, changing, isEqual };
}

interface ComparedOne {
  found: Drift | null;
  same: boolean;
  isChanging: boolean;
}

function compareOne(seen: Seen, known: Stored | undefined): ComparedOne {
  const { kind, key } = seen;
  if (!known) return { found: { kind, key, drift: "absent" }, same: false, isChanging: false };
  const differing = Object.keys(seen.fields).filter(
    (field) => !(field in known.fields && sameValue(known.fields[field], seen.fields[field])),
  );
  const gone = goneKeys(known, seen);
  if (known.deletedAt !== null) {
    const isAlive = !seen.deleted && seen.stamp.seenAt > known.deletedAt + REPLICA_LAG_MS;
    return {
      found: isAlive ? { kind, key, drift: "absent" } : null,
      same: false,
      isChanging: !isAlive && !seen.deleted,
    };
  }
  if (differing.length + gone.length === 0) return { found: null, same: true, isChanging: false };
  const compared = differing.filter(
    (field) =>
      // New fields are learnt without counting as drift. Figures that move with every delivery are not followed.
      field in known.fields &&
      !(kind === "repository" && VOLATILE.has(field)) &&
      !(MERGEABILITY.has(field) && known.fields.mergeable === null),
  );
  const fields = [...compared, ...gone].filter((field) => !mayBeNewer(known, field, seen));
  const found: Drift | null = fields.length > 0 ? { kind, key, drift: "differs", fields } : null;
  return { found, same: false, isChanging: fields.length < compared.length + gone.length };
}

/** A digest of these rows as they are served, with the rows that they refer to; null when a row is missing. */
export async function fingerprintOf(
  queries: Queries,
  repositoryId: number,
  kind: Kind,
  keys: readonly number[],
): Promise<string | null> {
  const { table, keyColumn, hasBody } = resourceOf(kind);
  const isSelf = kind === "repository";
  const rows = await queries.query<{ document: string; detail: string | null; body: string | null }>(sql`
    select t.document::text, ${isSelf ? sql`t.detail::text` : sql`null`} as detail,
        ${hasBody ? sql`t.body` : sql`null`} as body
      from unnest(${keys}::bigint[]) with ordinality as x(key, place)
      join ${table} t on ${sql.identifier(`t.${keyColumn}`)} = x.key
        ${isSelf ? sql`` : sql`and t.repository_id = ${repositoryId}`}
      where t.deleted_at is null order by x.place`);
  if (rows.length !== keys.length) return null;
  const texts = await renderDocuments(
    new SharedRows(queries),
    rows.map((row) => ({ ...row, repositoryId })),
    { api: "" },
  );
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text ?? "").update("\n");
  return hash.digest("base64url");
}

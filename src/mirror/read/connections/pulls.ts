import { sql } from "../../../../db/sql.ts";
import { direction, INTEGER, type Order, type PageSource, type SortKey, TIMESTAMP } from "../pages.ts";
import { type Above, anyLabel, under } from "./issues.ts";

export interface PullsArguments {
  orderBy?: Order | null;
  states?: ("OPEN" | "CLOSED" | "MERGED")[] | null;
  labels?: string[] | null;
  headRefName?: string | null;
  baseRefName?: string | null;
}

const PULL_STATES = {
  OPEN: sql`p.state = 'open'`,
  CLOSED: sql`(p.state = 'closed' and p.merged_at is null)`,
  MERGED: sql`p.merged_at is not null`,
};

export function pulls(
  { orderBy, states, labels, headRefName, baseRefName }: PullsArguments,
  above: Above = "repository",
): PageSource {
  return {
    from: sql`pull_requests p`,
    repositoryId: sql`p.repository_id`,
    document: sql`p.document`,
    detail: sql`p.detail`,
    body: sql`p.body`,
    conditions: [
      sql`${under(sql`p`, above)} and p.id is not null and p.deleted_at is null`,
      ...(states && states.length > 0 ? [sql.or(states.map((state) => PULL_STATES[state]))] : []),
      ...(headRefName == null ? [] : [sql`p.head_ref = ${headRefName}`]),
      ...(baseRefName == null ? [] : [sql`p.base_ref = ${baseRefName}`]),
      ...anyLabel(sql`p`, labels),
    ],
    ...pullKey(orderBy),
    tie: sql`p.number`,
    direction: direction(orderBy),
  };
}

function pullKey(orderBy: Order | null | undefined): SortKey {
  switch (orderBy?.field) {
    case "UPDATED_AT":
      return { key: sql`p.updated_at`, keyType: TIMESTAMP };
    case "COMMENTS":
      // Only the read of a single pull request shows the count.
      return { key: sql`coalesce(p.comments, 0)`, keyType: INTEGER };
    default:
      return { key: sql`p.created_at`, keyType: TIMESTAMP };
  }
}

import { sql } from "../../../../db/sql.ts";
import {
  BIGINT,
  contains,
  direction,
  INTEGER,
  type Order,
  type PageSource,
  type SortKey,
  TEXT,
  TIMESTAMP,
  time,
} from "../pages.ts";
import { assignable } from "../users.ts";

export function labels({ orderBy, query }: { orderBy?: Order | null; query?: string | null }): PageSource {
  return {
    from: sql`labels l`,
    repositoryId: sql`l.repository_id`,
    document: sql`l.document`,
    conditions: [
      sql`l.repository_id = x.r and l.deleted_at is null`,
      ...contains([sql`l.name`, sql`l.description`], query),
    ],
    // Upstream does not send when a label was made, but later labels have larger ids.
    ...(orderBy?.field === "NAME" ? { key: sql`lower(l.name)`, keyType: TEXT } : { key: sql`l.id`, keyType: BIGINT }),
    tie: sql`l.id`,
    direction: direction(orderBy),
  };
}

const BY_NUMBER: SortKey = { key: sql`m.number`, keyType: INTEGER };
const MILESTONE_KEYS: Record<string, SortKey> = {
  DUE_DATE: { key: sql`coalesce(m.due_on, 'infinity')`, keyType: TIMESTAMP },
  CREATED_AT: time(sql`m.created_at`),
  UPDATED_AT: time(sql`m.updated_at`),
  NUMBER: BY_NUMBER,
};

export function milestones({
  orderBy,
  query,
  states,
}: {
  orderBy?: Order | null;
  query?: string | null;
  states?: string[] | null;
}): PageSource {
  return {
    from: sql`milestones m`,
    repositoryId: sql`m.repository_id`,
    document: sql`m.document`,
    conditions: [
      sql`m.repository_id = x.r and m.deleted_at is null`,
      ...(states && states.length > 0
        ? [sql`m.state = any(${states.map((state) => state.toLowerCase())}::text[])`]
        : []),
      ...contains([sql`m.title`], query),
    ],
    ...(MILESTONE_KEYS[orderBy?.field ?? ""] ?? BY_NUMBER),
    tie: sql`m.number`,
    direction: direction(orderBy),
  };
}

/** By login, like REST's list; only people are of the type `User`. */
export function assignableUsers({ query }: { query?: string | null }): PageSource {
  return {
    from: sql`users u`,
    repositoryId: sql`0`,
    document: sql`u.document`,
    conditions: [
      sql`u.id in (${assignable(sql`x.r`)}) and u.deleted_at is null and coalesce(u.type, 'User') = 'User'`,
      ...contains([sql`u.login`, sql`u.name`], query),
    ],
    key: sql`lower(u.login)`,
    keyType: TEXT,
    tie: sql`u.id`,
    direction: "asc",
  };
}

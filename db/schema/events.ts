import { sql } from "drizzle-orm";
import { boolean, check, index, integer, json, pgTable, primaryKey, text, unique, uuid } from "drizzle-orm/pg-core";
import { int8, timestamptz } from "./columns.ts";

/**
 * The ordered log. One row is one event as others hear of it, written by the transaction that settled its delivery,
 * and kept as long as the delivery is.
 */
export const events = pgTable(
  "events",
  {
    repositoryId: int8("repository_id").notNull(),
    guid: text().notNull(),
    id: int8(),
    deliveryId: uuid("delivery_id").notNull(),
    event: text().notNull(),
    action: text(),
    ownerId: int8("owner_id"),
    receivedAt: timestamptz("received_at").notNull(),
    isMade: boolean("is_made").default(false).notNull(),
    number: integer(),
    isPullRequest: boolean("is_pull_request"),
    wasPrivate: boolean("was_private"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.guid], name: "events_pkey" }),
    index("events_delivery").on(table.deliveryId),
    index("events_held").on(table.repositoryId).where(sql`(id IS NULL)`),
    index("events_placed").on(table.id).where(sql`(id IS NOT NULL)`),
    unique("events_repository_id_id_key").on(table.repositoryId, table.id),
  ],
);

/** One row at most: what the log no longer has. Without a row nothing was pruned since its first event. */
export const eventLog = pgTable(
  "event_log",
  {
    isOne: boolean("is_one").default(true).primaryKey(),
    prunedId: int8("pruned_id").notNull(),
  },
  (_table) => [check("event_log_one", sql`is_one`)],
);

/**
 * One row is one thing of a resource that was found changed and that no webhook has told of: an event is made of it,
 * unless the webhook comes first. Then it says what that event told, for webhooks that come late.
 */
export const foundChanges = pgTable(
  "found_changes",
  {
    repositoryId: int8("repository_id").notNull(),
    kind: text().notNull(),
    key: int8().notNull(),
    aspect: text().notNull(),
    was: json(),
    foundAt: timestamptz("found_at"),
    heardAt: timestamptz("heard_at"),
    made: json(),
    madeUntil: timestamptz("made_until"),
    madeAt: timestamptz("made_at"),
    overtaken: boolean().default(false).notNull(),
    isLate: boolean("is_late").default(false).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.kind, table.key, table.aspect], name: "found_changes_pkey" }),
    index("found_changes_found").on(table.foundAt).where(sql`(found_at IS NOT NULL)`),
    check("found_changes_made", sql`((made IS NULL) OR (made_at IS NOT NULL))`),
    check("found_changes_was", sql`((found_at IS NULL) OR (was IS NOT NULL))`),
  ],
);

import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { bytea, int8, timestamptz } from "./columns.ts";
import type { DeliveryStatus } from "./states.ts";

/** The inbox. One row is one webhook delivery, acknowledged to upstream. */
export const deliveries = pgTable(
  "deliveries",
  {
    id: uuid().default(sql`uuidv7()`).primaryKey(),
    hookId: int8("hook_id").notNull(),
    guid: text().notNull(),
    event: text().notNull(),
    action: text(),
    repositoryId: int8("repository_id"),
    payload: bytea().notNull(),
    status: text().$type<DeliveryStatus>().default("pending").notNull(),
    attempts: integer().default(0).notNull(),
    reason: text(),
    receivedAt: timestamptz("received_at").notNull(),
    settledAt: timestamptz("settled_at"),
    traceparent: text(),
    isMade: boolean("is_made").default(false).notNull(),
    signerType: text("signer_type"),
    signerId: int8("signer_id"),
  },
  (table) => [
    index("deliveries_failed").on(table.receivedAt).where(sql`(status = 'failed'::text)`),
    index("deliveries_pending").on(table.receivedAt).where(sql`(status = 'pending'::text)`),
    index("deliveries_received").on(table.receivedAt),
    index("deliveries_repository").on(table.repositoryId, table.receivedAt),
    unique("deliveries_hook_id_guid_key").on(table.hookId, table.guid),
    check(
      "deliveries_status",
      sql`(status = ANY (ARRAY['pending'::text, 'applied'::text, 'ignored'::text, 'failed'::text]))`,
    ),
  ],
);

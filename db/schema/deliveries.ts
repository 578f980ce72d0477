import { check, customType, integer, pgTable, sql, text, unique, uuid } from "../drizzle.ts";
import { id, instant } from "./columns.ts";

const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => "bytea" });

export const DELIVERY_STATUSES = ["pending", "applied", "ignored", "failed"] as const;
/**
 * `src/inbox` alone writes it.
 *
 * - pending: acknowledged, and to be applied.
 * - applied, ignored: settled. A redelivery changes nothing.
 * - failed: its job has failed for good. A redelivery makes it pending again; an operator can do so with any delivery.
 */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** One row is one delivery, acknowledged to upstream: the inbox. */
export const deliveries = pgTable(
  "deliveries",
  {
    id: uuid("id").primaryKey().default(sql`uuidv7()`),
    /** Upstream's hook, 0 when it does not name one. One event has one GUID at all hooks. */
    hookId: id("hook_id").notNull(),
    guid: text("guid").notNull(),
    event: text("event").notNull(),
    action: text("action"),
    repositoryId: id("repository_id"),
    /** The JSON document as received, the form encoding taken off. */
    payload: bytes("payload").notNull(),
    status: text("status", { enum: DELIVERY_STATUSES }).notNull().default("pending"),
    attempts: integer("attempts").notNull().default(0),
    /** Why it was ignored, or how it failed last. */
    reason: text("reason"),
    receivedAt: instant("received_at").notNull(),
    settledAt: instant("settled_at"),
  },
  (table) => [
    unique().on(table.hookId, table.guid),
    check("deliveries_status", sql`${table.status} in ('pending', 'applied', 'ignored', 'failed')`),
  ],
);

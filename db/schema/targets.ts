import { sql } from "drizzle-orm";
import { boolean, check, foreignKey, index, integer, json, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { bytea, int8, timestamptz } from "./columns.ts";
import type { TargetContentType, TargetFormat, TargetMadeBy, TargetScope, TokenOf } from "./states.ts";

/**
 * One row is one address that events are sent to: a hook that somebody registered here, or one that an operator named.
 */
export const targets = pgTable(
  "targets",
  {
    id: int8().primaryKey().generatedAlwaysAsIdentity(),
    scope: text().$type<TargetScope>().notNull(),
    scopeId: int8("scope_id").notNull(),
    madeBy: text("made_by").$type<TargetMadeBy>().notNull(),
    url: text().notNull(),
    contentType: text("content_type").$type<TargetContentType>().notNull(),
    insecureSsl: boolean("insecure_ssl").notNull(),
    secret: bytea(),
    events: text().array().notNull(),
    active: boolean().notNull(),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    acceptedAt: timestamptz("accepted_at"),
    disabledAt: timestamptz("disabled_at"),
    problem: text(),
    rewriteTo: text("rewrite_to"),
    installationId: int8("installation_id"),
    makerId: int8("maker_id"),
    tokenOf: text("token_of").$type<TokenOf>(),
    token: text(),
    pausedWhy: text("paused_why"),
    format: text().$type<TargetFormat>(),
    actions: text().array(),
    labels: text().array(),
  },
  (table) => [
    index("targets_scope").on(table.scope, table.scopeId),
    check("targets_content_type", sql`(content_type = ANY (ARRAY['json'::text, 'form'::text]))`),
    check("targets_disabled", sql`((disabled_at IS NULL) = (problem IS NULL))`),
    check(
      "targets_format",
      sql`(format = ANY (ARRAY['slack'::text, 'teams'::text, 'discord'::text, 'cloudevents'::text]))`,
    ),
    check("targets_made_by", sql`(made_by = ANY (ARRAY['api'::text, 'operator'::text]))`),
    check("targets_scope", sql`(scope = ANY (ARRAY['repository'::text, 'organization'::text, 'everything'::text]))`),
    check(
      "targets_token",
      sql`(((token_of IS NULL) = (token IS NULL)) AND (token_of = ANY (ARRAY['own'::text, 'upstream'::text])))`,
    ),
  ],
);

/**
 * One row is one request that somebody asked for and that is not sent yet: a ping, a test, or a delivery once more.
 * Each is tried once.
 */
export const targetAsks = pgTable(
  "target_asks",
  {
    id: int8().primaryKey().generatedAlwaysAsIdentity(),
    targetId: int8("target_id").notNull(),
    guid: text().notNull(),
    event: text().notNull(),
    action: text(),
    repositoryId: int8("repository_id"),
    deliveryId: uuid("delivery_id"),
    payload: bytea(),
    redelivery: boolean().notNull(),
    askedAt: timestamptz("asked_at").notNull(),
    heldUntil: timestamptz("held_until"),
  },
  (table) => [
    foreignKey({
      columns: [table.targetId],
      foreignColumns: [targets.id],
      name: "target_asks_target_id_fkey",
    }).onDelete("cascade"),
    index("target_asks_target").on(table.targetId, table.id),
  ],
);

/** One row is how far a target has come with the events of one repository. They are sent one after the other. */
export const targetCursors = pgTable(
  "target_cursors",
  {
    targetId: int8("target_id").notNull(),
    repositoryId: int8("repository_id").notNull(),
    doneId: int8("done_id").notNull(),
    wantedId: int8("wanted_id").notNull(),
    attempts: integer().default(0).notNull(),
    firstTriedAt: timestamptz("first_tried_at"),
    retryAt: timestamptz("retry_at"),
    heldUntil: timestamptz("held_until"),
    heldBy: uuid("held_by"),
  },
  (table) => [
    primaryKey({ columns: [table.targetId, table.repositoryId], name: "target_cursors_pkey" }),
    index("target_cursors_pending").on(table.targetId, table.doneId).where(sql`(wanted_id > done_id)`),
  ],
);

/** One row is one request that was made of a target, and its answer. */
export const targetDeliveries = pgTable(
  "target_deliveries",
  {
    targetId: int8("target_id").notNull(),
    id: int8().generatedAlwaysAsIdentity(),
    guid: text().notNull(),
    event: text().notNull(),
    action: text(),
    repositoryId: int8("repository_id"),
    deliveryId: uuid("delivery_id"),
    payload: bytea(),
    deliveredAt: timestamptz("delivered_at").notNull(),
    redelivery: boolean().notNull(),
    durationMs: integer("duration_ms").notNull(),
    status: text().notNull(),
    statusCode: integer("status_code").notNull(),
    url: text().notNull(),
    requestHeaders: json("request_headers").$type<Record<string, string>>().notNull(),
    responseHeaders: json("response_headers").$type<Record<string, string>>().notNull(),
    responseBody: text("response_body"),
  },
  (table) => [
    primaryKey({ columns: [table.targetId, table.id], name: "target_deliveries_pkey" }),
    foreignKey({
      columns: [table.targetId],
      foreignColumns: [targets.id],
      name: "target_deliveries_target_id_fkey",
    }).onDelete("cascade"),
    index("target_deliveries_delivered").on(table.deliveredAt),
    index("target_deliveries_delivery").on(table.deliveryId),
  ],
);

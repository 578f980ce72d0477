import { table } from "./table.ts";

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
export const deliveries = table("deliveries", {
  id: "uuid",
  /** Upstream's hook, 0 when it does not name one. One event has one GUID at all hooks. */
  hook_id: "bigint",
  guid: "text",
  event: "text",
  action: "text?",
  repository_id: "bigint?",
  /** The JSON document as received, the form encoding taken off. */
  payload: "bytea",
  status: "text",
  attempts: "integer",
  /** Why it was ignored, or how it failed last. */
  reason: "text?",
  received_at: "timestamptz",
  settled_at: "timestamptz?",
});

import { randomUUID } from "node:crypto";
import type { MarkKind } from "../../db/schema/states.ts";
import type { HookHolder } from "../config/hook-secrets.ts";

/**
 * A whole delivery on its way to Postgres, while Postgres cannot be reached. It is the only job that carries more than
 * keys.
 */
export interface InboxJob {
  hookId: number;
  guid: string;
  event: string;
  /** As the receiver read it; absent from jobs of older versions. */
  repositoryId?: number | null;
  /** Whose own secret signed it; absent: WEBHOOK_SECRET itself did. */
  signer?: HookHolder;
  /** The JSON document as received, base64. */
  payload: string;
  /** ISO 8601, by our clock. */
  receivedAt: string;
  /** Names the trace that it arrived in, where that is told. */
  traceparent?: string;
  /** See `Delivery`; absent from jobs of older versions. */
  isMade?: boolean;
}

export interface DeliveryJob {
  /** `deliveries.id` */
  deliveryId: string;
  /** Names the trace that it arrived in, where that is told. */
  traceparent?: string;
}

/** How many deliveries share a job at most. Larger bursts save hardly more, and workers have smaller parts to share. */
export const BURST_SIZE = 16;

export interface BurstJob {
  /** `deliveries.id` of deliveries that arrived together, at most `BURST_SIZE`. */
  deliveryIds: string[];
  /** The traces that they arrived in, as far as they are told. */
  traceparents?: string[];
}

export interface RepositoryJob {
  repositoryId: number;
}

/** A row of `refresh_marks`. */
export interface RefreshJob {
  kind: MarkKind;
  repositoryId: number;
  /** The resource's id, or its number where upstream asks by number (issue, pull request, milestone). */
  key: number;
}

export interface TargetJob {
  /** `targets.id` */
  targetId: number;
}

/** A part of all repositories: a range of their ids. */
export interface Shard {
  at: number;
  of: number;
  /** Its first id; null: it begins with the least. */
  from: number | null;
  /** The first id behind it; null: it has all behind `from`. */
  until: number | null;
}

/** The tasks whose work on large fleets is divided. */
export type ShardedTask = "sweep" | "check-deliveries";

/** What an operator asked for on the page, sealed (`commands.ts`). */
export interface CommandJob {
  id: string;
  /** Base64. */
  sealed: string;
}

export const MAINTENANCE_TASKS = [
  "dispatch",
  "prune",
  "select",
  "subscribe",
  "schedule-catch-up",
  "sweep",
  "check-deliveries",
  "schedule-audits",
  "read-names",
  "note-quota",
] as const;
/** What the scheduler asks for at intervals. */
export type MaintenanceTask = (typeof MAINTENANCE_TASKS)[number];

/** The job's id, so that the queue recognises a refresh that it already has. */
export function refreshId({ kind, repositoryId, key }: RefreshJob): string {
  return `${kind}-${repositoryId}-${key}`;
}

/** A new job's id. It says how many deliveries share the job: they are counted without reading it. */
export function burstId(deliveries: number): string {
  return `${deliveries}-${randomUUID()}`;
}

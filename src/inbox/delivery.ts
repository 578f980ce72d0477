import { type Fields, objectOf, wholeOf } from "../json.ts";

/** The value of `deliveries.hook_id` for deliveries that we made ourselves, of changes that no webhook reported. */
export const MADE_HOOK = -1;

/** A delivery as the receiver knows it, without its payload's meaning. */
export interface Delivery {
  /** Upstream's hook; 0 when the request names none. */
  hookId: number;
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  /** The JSON document as received, without its form encoding. */
  payload: Buffer;
  receivedAt: Date;
  /** The trace in which the delivery arrived; null: unknown. */
  traceparent: string | null;
  /** Whether upstream is a mirror that made the delivery itself, of a change that no webhook reported. */
  isMade: boolean;
}

/** The keys by which the inbox is searched. A value of another type is left out, not refused. */
export function keysOf({ action, repository }: Fields): { action: string | null; repositoryId: number | null } {
  return {
    action: typeof action === "string" && /^[\w.-]{1,100}$/.test(action) ? action : null,
    repositoryId: wholeOf(objectOf(repository).id),
  };
}

import { type Fields, objectOf } from "../json.ts";

/** Stands in `deliveries.hook_id` for what we made ourselves, of a change that no webhook told of. */
export const MADE_HOOK = -1;

/** A delivery as the receiver knows it. The payload's meaning is not its business. */
export interface Delivery {
  /** Upstream's hook; 0 when the request names none. */
  hookId: number;
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  /** The JSON document as received, the form encoding taken off. */
  payload: Buffer;
  receivedAt: Date;
  /** Names the trace that it arrived in; null: it is not told. */
  traceparent: string | null;
  /** The mirror that is our upstream made it, of a change that no webhook told of. */
  isMade: boolean;
}

/** The keys that the inbox is searched by. What is no such key is left out, not refused. */
export function keysOf({ action, repository }: Fields): { action: string | null; repositoryId: number | null } {
  const { id } = objectOf(repository);
  return {
    action: typeof action === "string" && /^[\w.-]{1,100}$/.test(action) ? action : null,
    repositoryId: typeof id === "number" && Number.isSafeInteger(id) ? id : null,
  };
}

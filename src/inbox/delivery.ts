/** What the receiver knows of a delivery. What its payload means is for others to say. */
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
}

/** The keys that the inbox is searched by. What is no such key is left out, not refused. */
export function keysOf(payload: object): { action: string | null; repositoryId: number | null } {
  const { action, repository } = payload as { action?: unknown; repository?: { id?: unknown } | null };
  const id = repository?.id;
  return {
    action: typeof action === "string" && /^[\w.-]{1,100}$/.test(action) ? action : null,
    repositoryId: Number.isSafeInteger(id) ? (id as number) : null,
  };
}

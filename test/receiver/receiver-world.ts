import { sign } from "@octokit/webhooks-methods";
import { sql } from "../../db/sql.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";

export const SECRET = "first-webhook-secret";
export const OLDER_SECRET = "older-webhook-secret";

/** A web server without workers. Deliveries stay in the inbox. */
export interface ReceiverWorld extends TestMirror {
  /** Signs a delivery and sends it. The answer's body is parsed. */
  deliver(options?: Sending): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }>;
  inbox(): Promise<InboxRow[]>;
}

export interface Sending {
  event?: string;
  guid?: string;
  hookId?: number;
  payload?: unknown;
  /** The body, in the place of the JSON of `payload`. */
  body?: string | Uint8Array;
  secret?: string;
  /** The query of the address, with its question mark. */
  query?: string;
  /** Headers beside those that upstream sends. Null takes one of upstream's away. */
  headers?: Record<string, string | null>;
}

interface InboxRow {
  id: string;
  guid: string;
  hook_id: string;
  event: string;
  action: string | null;
  repository_id: string | null;
  payload: Buffer;
  status: string;
  reason: string | null;
  settled_at: Date | null;
}

export async function openReceiverWorld(env: NodeJS.ProcessEnv = {}): Promise<ReceiverWorld> {
  const mirror = await openMirror({ env: { WEBHOOK_SECRET: `${SECRET},${OLDER_SECRET}`, ...env } });
  return {
    ...mirror,
    deliver: (options = {}) => deliverTo(mirror.url, options),
    inbox: async () => await mirror.ctx.db.query<InboxRow>(sql`select * from deliveries order by received_at, guid`),
  };
}

export const opened = {
  action: "opened",
  issue: { id: 1, title: "Hello" },
  repository: { id: 7, full_name: "octo/demo" },
};

/** Signs a delivery and sends it to a receiver with the same secrets. */
export async function deliverTo(
  url: string,
  sending: Sending = {},
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const body = sending.body ?? JSON.stringify(sending.payload ?? opened);
  const signed =
    typeof body === "string" && body !== "" ? await sign(sending.secret ?? SECRET, body) : `sha256=${"0".repeat(64)}`;
  const headers = new Headers({
    "content-type": "application/json",
    "x-github-event": sending.event ?? "issues",
    "x-github-delivery": sending.guid ?? crypto.randomUUID(),
    "x-github-hook-id": String(sending.hookId ?? 42),
    "x-hub-signature-256": signed,
  });
  for (const [name, value] of Object.entries(sending.headers ?? {})) {
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  const answer = await fetch(`${url}/webhooks${sending.query ?? ""}`, { method: "POST", headers, body });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, unknown> };
}

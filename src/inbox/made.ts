import { randomUUID } from "node:crypto";
import type { Transaction } from "../../db/database.ts";
import { deliveries } from "../schema.ts";
import { MADE_HOOK } from "./inbox.ts";

/** A webhook of our own, made of a change for which upstream sent none. */
export interface MadeDelivery {
  event: string;
  action: string;
  repositoryId: number;
  /** When the change was found. */
  foundAt: Date;
  payload: Buffer;
}

/**
 * Stores made webhooks in the inbox, as applied, since the mirror shows the changes already. Answers the ids, in order.
 */
export async function keepMade(tx: Transaction, made: readonly MadeDelivery[], at: Date): Promise<string[]> {
  const ids: string[] = [];
  // Stored one after the other, so that their ids grow in order.
  for (const { event, action, repositoryId, foundAt, payload } of made) {
    const [row] = await tx
      .insert(deliveries)
      .values({
        hookId: MADE_HOOK,
        guid: randomUUID(),
        event,
        action,
        repositoryId,
        payload,
        status: "applied",
        receivedAt: foundAt,
        settledAt: at,
        isMade: true,
      })
      .returning({ id: deliveries.id })
      .prepare()
      .execute();
    if (row) ids.push(row.id);
  }
  return ids;
}

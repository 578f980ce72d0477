import { announce } from "../../../db/announcement.ts";
import type { Transaction } from "../../../db/database.ts";

/** An issue or pull request that a committed transaction has changed, deleted or stored for the first time. */
export interface Change {
  repositoryId: number;
  kind: "issue" | "pull_request";
  number: number;
}

/** Tells listeners in every process, once the transaction is committed. */
export async function announceChanges(tx: Transaction, changes: readonly Change[]): Promise<void> {
  await announce(
    tx,
    changes.map(({ repositoryId, kind, number }) => `${repositoryId} ${kind} ${number}`),
  );
}

/** The change that an announcement tells of; null: it is about something else. Pure. */
export function announcedChange(text: string): Change | null {
  const [repositoryId, kind, number] = text.split(" ");
  if (kind !== "issue" && kind !== "pull_request") return null;
  return { repositoryId: Number(repositoryId), kind, number: Number(number) };
}

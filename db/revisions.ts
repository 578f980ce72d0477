import type { Transaction } from "./database.ts";

/** Stands for people, and for everything else that belongs to no repository. */
export const PEOPLE = 0;

/** The old way to write `tx.touch(…)`. */
export function touch(tx: Transaction, repositoryIds: Iterable<number>, names: Iterable<string> = []): void {
  tx.touch(repositoryIds, names);
}

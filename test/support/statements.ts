import { vi } from "vitest";
import type { Database } from "../../db/database.ts";

/** Counts the statements that run on the pool, outside transactions, until it is disposed of. */
export function countStatements(db: Database): { count: () => number } & Disposable {
  const spies = [vi.spyOn(db, "query"), vi.spyOn(db, "prepared"), vi.spyOn(db, "count")];
  return {
    count: () => spies.reduce((sum, { mock }) => sum + mock.calls.length, 0),
    [Symbol.dispose]: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}

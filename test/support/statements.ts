import { vi } from "vitest";
import type { Database } from "../../db/database.ts";

/** Notes the statements that run on the pool, outside transactions, until it is disposed of. */
export function countStatements(db: Database): { count: () => number; texts: () => string[] } & Disposable {
  const spies = [vi.spyOn(db, "query"), vi.spyOn(db, "prepared"), vi.spyOn(db, "count")];
  return {
    count: () => spies.reduce((sum, { mock }) => sum + mock.calls.length, 0),
    texts: () => spies.flatMap(({ mock }) => mock.calls.map(([statement]) => statement.compiled().text)),
    [Symbol.dispose]: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}

import { vi } from "vitest";
import { Database } from "../../db/database.ts";

/** The class that pools, connections and transactions have in common. */
const runner: Pick<Database, "run"> = Object.getPrototypeOf(Database.prototype);

/** Notes the statements on this process's pools, outside of transactions, until it is disposed of. */
export function countStatements(): {
  count: () => number;
  texts: () => string[];
  /** How many connections the pools have that ran such statements. */
  connections: (such: RegExp) => number;
} & Disposable {
  const spy = vi.spyOn(runner, "run");
  const ran = () =>
    spy.mock.calls.flatMap(([{ text }], at) => {
      const db: unknown = spy.mock.contexts[at];
      return db instanceof Database ? [{ text, db }] : [];
    });
  const texts = () => ran().map(({ text }) => text);
  return {
    count: () => texts().length,
    texts,
    connections: (such) => Math.max(0, ...ran().map(({ text, db }) => (such.test(text) ? db.load().open : 0))),
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

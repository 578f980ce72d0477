import { vi } from "vitest";
import { Database } from "../../db/database.ts";

/** The class that pools, connections and transactions have in common. */
const runner: Pick<Database, "run"> = Object.getPrototypeOf(Database.prototype);

/** Notes the statements on this process's pools, outside of transactions, until it is disposed of. */
export function countStatements(): { count: () => number; texts: () => string[] } & Disposable {
  const spy = vi.spyOn(runner, "run");
  const texts = () =>
    spy.mock.calls
      .filter((_call, at) => (spy.mock.contexts[at] as unknown) instanceof Database)
      .map(([statement]) => statement.text);
  return {
    count: () => texts().length,
    texts,
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

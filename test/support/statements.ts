import { vi } from "vitest";
import { Database } from "../../db/database.ts";
import { compiled } from "../../db/sql.ts";

/** The class that pools, connections and transactions have in common. */
const runner: Pick<Database, "query" | "prepared" | "count"> = Object.getPrototypeOf(Database.prototype);

/** Notes the statements on this process's pools, outside of transactions, until it is disposed of. */
export function countStatements(): { count: () => number; texts: () => string[] } & Disposable {
  const spies = [vi.spyOn(runner, "query"), vi.spyOn(runner, "prepared"), vi.spyOn(runner, "count")];
  const texts = () =>
    spies.flatMap(({ mock }) =>
      mock.calls
        .filter((_call, at) => (mock.contexts[at] as unknown) instanceof Database)
        .map(([statement]) => compiled(statement).text),
    );
  return {
    count: () => texts().length,
    texts,
    [Symbol.dispose]: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}

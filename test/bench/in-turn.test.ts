import { expect, test } from "vitest";
import { inTurn } from "../../bench/corpus-web.ts";
import type { ServerProcess } from "../../bench/processes.ts";

test("each slice begins with the first request that was not asked yet, and the first ones follow the last", () => {
  const requests = Array.from({ length: 5 }, (_, at) => Buffer.from([at]));
  // No request reaches a server.
  const side = inTurn({} as ServerProcess, requests, 4);
  const numbers = () => side.requests.map(([number]) => number);
  expect(numbers()).toEqual([0, 1, 2, 3]);
  side.asked?.(3);
  expect(numbers()).toEqual([3, 4, 0, 1]);
  side.asked?.(1);
  expect(numbers()).toEqual([4, 0, 1, 2]);
});

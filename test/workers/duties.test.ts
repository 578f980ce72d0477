import { expect, test } from "vitest";
import { UpstreamUnavailableError } from "../../src/upstream/protocol/errors.ts";
import { allOf } from "../../workers/duties.ts";

function openLog() {
  const said: unknown[] = [];
  return { said, error: (fields: object) => void said.push(fields) };
}

const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const first = new Error("the first");
const second = new Error("the second");

test("a duty that fails lets the others come to their end, and none of the failures is lost", async () => {
  const log = openLog();
  const slow = Promise.withResolvers<void>();
  let isOver = false;
  const all = allOf(log, "dispatch", [Promise.reject(first), Promise.reject(second), slow.promise]).finally(() => {
    isOver = true;
  });
  all.catch(() => {}); // The promise is awaited below.
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  slow.resolve();
  await expect(all).rejects.toBe(first);
  expect(log.said).toEqual([{ task: "dispatch", err: second }]);
});

test("that Postgres is away is thrown only where nothing else has failed, so that the job waits instead of failing", async () => {
  const log = openLog();
  await expect(allOf(log, "prune", [Promise.reject(refused), Promise.resolve()])).rejects.toBe(refused);
  await expect(allOf(log, "prune", [Promise.reject(refused), Promise.reject(second)])).rejects.toBe(second);
  await expect(allOf(log, "prune", [Promise.resolve()])).resolves.toBeUndefined();
  expect(log.said).toEqual([]);
});

test("an outage of upstream is logged beside another failure, though its cause looks like one of Postgres", async () => {
  const log = openLog();
  const away = new UpstreamUnavailableError("no answer", "unreachable", { cause: refused });
  await expect(allOf(log, "prune", [Promise.reject(second), Promise.reject(away)])).rejects.toBe(second);
  expect(log.said).toEqual([{ task: "prune", err: away }]);
});

import { expect, test } from "vitest";
import { GatheredRead } from "../../db/gathered.ts";

test("who asks while a gathered statement is under way is answered by the next, and its failure is told to those alone whom it answers", async () => {
  const asked: { keys: number[]; go: PromiseWithResolvers<void> }[] = [];
  const read = new GatheredRead(async (_db, keys: number[]) => {
    const go = Promise.withResolvers<void>();
    asked.push({ keys, go });
    await go.promise;
    return keys.map((key) => key * 10);
  });
  const db = {} as never;
  const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const first = [read.find(db, 1), read.find(db, 2)];
  await turn();
  const second = [read.find(db, 3), read.find(db, 4)];
  await turn();
  expect(asked.map(({ keys }) => keys)).toEqual([[1, 2]]);
  asked[0]?.go.reject(new Error("refused"));
  for (const one of first) await expect(one).rejects.toThrow("refused");
  await turn();
  expect(asked.map(({ keys }) => keys)).toEqual([
    [1, 2],
    [3, 4],
  ]);
  asked[1]?.go.resolve();
  expect(await Promise.all(second)).toEqual([30, 40]);
});

test("a gathered statement that does not come back holds nobody up who asks after it", async () => {
  const read = new GatheredRead(async (_db, keys: number[]) => {
    if (keys.includes(1)) await new Promise(() => {});
    return keys;
  });
  const db = {} as never;
  void read.find(db, 1);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(await Promise.all([read.find(db, 2), read.find(db, 3)])).toEqual([2, 3]);
});

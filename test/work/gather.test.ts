import { expect, test } from "vitest";
import { Gather } from "../../src/work/gather.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test("questions that come during a round are answered by the next, and a failure is told to those of its round alone", async () => {
  const rounds: { keys: number[]; go: PromiseWithResolvers<void> }[] = [];
  const gather = new Gather(async (keys: number[]) => {
    const go = Promise.withResolvers<void>();
    rounds.push({ keys, go });
    await go.promise;
    return keys.map((key) => key * 10);
  });
  const first = [gather.ask(1), gather.ask(2)];
  await nextTurn();
  const second = [gather.ask(3), gather.ask(4)];
  await nextTurn();
  expect(rounds.map(({ keys }) => keys)).toEqual([[1, 2]]);
  rounds[0]?.go.reject(new Error("refused"));
  for (const one of first) await expect(one).rejects.toThrow("refused");
  await nextTurn();
  expect(rounds.map(({ keys }) => keys)).toEqual([
    [1, 2],
    [3, 4],
  ]);
  rounds[1]?.go.resolve();
  expect(await Promise.all(second)).toEqual([30, 40]);
});

test("a round that does not end holds up no later question", async () => {
  const gather = new Gather(async (keys: number[]) => {
    if (keys.includes(1)) await new Promise(() => {});
    return keys;
  });
  void gather.ask(1);
  await nextTurn();
  expect(await Promise.all([gather.ask(2), gather.ask(3)])).toEqual([2, 3]);
});

test("a round takes no more questions than it may, and as many rounds run at once as may", async () => {
  const rounds: number[][] = [];
  const gather = new Gather(
    async (keys: number[]) => {
      rounds.push(keys);
      await nextTurn();
      return keys;
    },
    { most: 2, atOnce: 2, patienceMs: null },
  );
  const asked = [1, 2, 3, 4, 5].map((key) => gather.ask(key));
  await new Promise((resolve) => setImmediate(resolve));
  expect(rounds).toEqual([
    [1, 2],
    [3, 4],
  ]);
  expect(await Promise.all(asked)).toEqual([1, 2, 3, 4, 5]);
  expect(rounds).toHaveLength(3);
});

test("the first round waits for what may still bring a question", async () => {
  const rounds: number[][] = [];
  const ready = Promise.withResolvers<void>();
  const gather = new Gather(
    async (keys: number[]) => {
      rounds.push(keys);
      return keys;
    },
    { waitFor: () => ready.promise },
  );
  const first = gather.ask(1);
  await nextTurn();
  const second = gather.ask(2);
  await nextTurn();
  expect(rounds).toEqual([]);
  ready.resolve();
  expect(await Promise.all([first, second])).toEqual([1, 2]);
  expect(rounds).toEqual([[1, 2]]);
});

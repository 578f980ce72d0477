import { expect, test } from "vitest";
import { Pace } from "../../src/work/pace.ts";
import { Thread, TooMuchWorkError } from "../../src/work/thread.ts";

const module = new URL("./counting-thread.ts", import.meta.url);
const open = (budgetMs = 60_000) => new Thread<string, string>(module, { budgetMs });

test("tasks are done elsewhere, while the event loop turns", async () => {
  const thread = open();
  let turns = 0;
  const count = setInterval(() => turns++, 1);
  expect(await Promise.all([thread.run("say a"), thread.run("block 100"), thread.run("say b")])).toEqual([
    "a",
    "blocked",
    "b",
  ]);
  clearInterval(count);
  expect(turns).toBeGreaterThan(3);
  await thread.close();
});

test("a task that takes too long is ended, and the next one is done", async () => {
  const thread = open(500);
  const [ended, done] = await Promise.allSettled([thread.run("block 3600000"), thread.run("say after")]);
  expect(ended).toMatchObject({ reason: expect.any(TooMuchWorkError) });
  expect(done).toMatchObject({ value: "after" });
  await thread.close();
});

test("a task that takes too much memory is ended, and the next one is done", async () => {
  const thread = open();
  const [ended, done] = await Promise.allSettled([thread.run("hoard"), thread.run("say after")]);
  expect(ended).toMatchObject({ reason: expect.any(TooMuchWorkError) });
  expect(done).toMatchObject({ value: "after" });
  await thread.close();
});

test("a task that fails says why, and so does a thread that cannot start", async () => {
  const thread = open();
  await expect(thread.run("fail")).rejects.toThrow("as it was asked to");
  await thread.close();
  const missing = new Thread(new URL("./no-such-thread.ts", import.meta.url), { budgetMs: 1 });
  const both = await Promise.allSettled([missing.run("say a"), missing.run("say b")]);
  for (const one of both) expect(one).toMatchObject({ reason: { message: expect.stringContaining("no-such-thread") } });
  await missing.close();
});

test("closing ends what runs and what waits, and nothing runs afterwards", async () => {
  const thread = open();
  const first = thread.run("block 3600000");
  first.catch(() => {});
  const second = thread.run("say a");
  second.catch(() => {});
  expect(thread.waiting).toBe(1);
  await thread.close();
  await expect(first).rejects.toThrow("closed");
  await expect(second).rejects.toThrow("closed");
  await expect(thread.run("say b")).rejects.toThrow("closed");
});

test("work in slices lets the event loop turn, in the order of asking", async () => {
  const pace = new Pace(5);
  const done: string[] = [];
  let turns = 0;
  const count = () => {
    turns += 1;
    if (done.length < 200) setImmediate(count);
  };
  setImmediate(count);
  const work = async (name: string) => {
    for (let step = 0; step < 100; step++) {
      if (pace.isOver()) await pace.turn();
      const until = performance.now() + 1;
      while (performance.now() < until);
      done.push(`${name} ${step}`);
    }
  };
  await Promise.all([work("a"), work("b")]);
  expect(done.filter((one) => one.startsWith("a"))).toEqual(Array.from({ length: 100 }, (_, at) => `a ${at}`));
  expect(done).toHaveLength(200);
  expect(turns).toBeGreaterThan(20);
});

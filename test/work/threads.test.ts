import { expect, test } from "vitest";
import { Pace } from "../../src/work/pace.ts";
import { Threads, ThreadsBusyError, TooMuchWorkError } from "../../src/work/threads.ts";

const module = new URL("./counting-thread.ts", import.meta.url);
const open = (options: { size?: number; mostWaiting?: number; budgetMs?: number } = {}) =>
  new Threads<string, string>(module, { size: 1, mostWaiting: 10, budgetMs: 60_000, ...options });

test("tasks are done elsewhere, while the event loop turns", async () => {
  const threads = open();
  let turns = 0;
  const count = setInterval(() => turns++, 1);
  expect(await Promise.all([threads.run("say a"), threads.run("block 100"), threads.run("say b")])).toEqual([
    "a",
    "blocked",
    "b",
  ]);
  clearInterval(count);
  expect(turns).toBeGreaterThan(3);
  await threads.close();
});

test("a task that takes too long is ended, and the next one is done", async () => {
  const threads = open({ budgetMs: 500 });
  const [ended, done] = await Promise.allSettled([threads.run("block 3600000"), threads.run("say after")]);
  expect(ended).toMatchObject({ reason: expect.any(TooMuchWorkError) });
  expect(done).toMatchObject({ value: "after" });
  await threads.close();
});

test("a task that takes too much memory is ended, and the next one is done", async () => {
  const threads = open();
  const [ended, done] = await Promise.allSettled([threads.run("hoard"), threads.run("say after")]);
  expect(ended).toMatchObject({ reason: expect.any(TooMuchWorkError) });
  expect(done).toMatchObject({ value: "after" });
  await threads.close();
});

test("a task that fails says why, and so does a thread that cannot start", async () => {
  const threads = open();
  await expect(threads.run("fail")).rejects.toThrow("as it was asked to");
  await threads.close();
  const missing = new Threads(new URL("./no-such-thread.ts", import.meta.url), {
    size: 1,
    mostWaiting: 2,
    budgetMs: 1,
  });
  await expect(missing.run("say a")).rejects.toThrow("no-such-thread");
  await missing.close();
});

test("what would wait for too long is refused, and closing ends what waits", async () => {
  const threads = open({ mostWaiting: 2 });
  const first = threads.run("block 3600000");
  first.catch(() => {});
  const second = threads.run("say a");
  second.catch(() => {});
  await expect(threads.run("say b")).rejects.toThrow(ThreadsBusyError);
  await threads.close();
  await expect(first).rejects.toThrow("closed");
  await expect(second).rejects.toThrow("closed");
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

/** Changes are told to those who listen. With nobody to hear them, commits do not wait for each other. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { listen as listenOn } from "../../db/announcement.ts";
import { isPostgresOutage } from "../../db/outage.ts";
import { connectTo } from "../support/database.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";

let mirror: TestMirror;
/** Hears all that is sent, and is no listener to those who send. */
let eavesdropper: pg.Client;
let overheard: string[] = [];
beforeAll(async () => {
  mirror = await openMirror({ web: false });
  eavesdropper = await connectTo(mirror.ctx.config.databaseUrl);
  eavesdropper.on("notification", ({ channel, payload = "" }) => {
    if (channel === "tain_changes") overheard.push(payload);
  });
  await eavesdropper.query("listen tain_changes; listen test_end");
});
afterAll(async () => {
  await eavesdropper?.end();
  await mirror?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  overheard = [];
});

const text = (number: number) => `change ${number}`;

/** A transaction that has announced a change, and is still open. */
async function opened(number: number): Promise<{ commit(): Promise<void> }> {
  const announced = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const done = mirror.ctx.db.transaction(async (tx) => {
    await tx.announce([text(number)]);
    announced.resolve();
    await asked.promise;
  });
  await Promise.race([announced.promise, done]);
  return {
    commit: async () => {
      asked.resolve();
      await done;
    },
  };
}

/** All that was sent before has been heard. */
async function heard(): Promise<string[]> {
  const end = new Promise<void>((resolve) => {
    const onNotification = ({ channel }: pg.Notification) => {
      if (channel !== "test_end") return;
      eavesdropper.off("notification", onNotification);
      resolve();
    };
    eavesdropper.on("notification", onNotification);
  });
  await eavesdropper.query("notify test_end");
  await end;
  return overheard;
}

async function listen(): Promise<{ numbers: number[]; stop(): Promise<void> }> {
  const numbers: number[] = [];
  const listening = await listenOn(mirror.ctx.config.databaseUrl, {
    onText: (heard) => numbers.push(Number(heard.split(" ")[1])),
    onLost: (error) => {
      throw error;
    },
  });
  return { numbers, stop: async () => await listening[Symbol.asyncDispose]() };
}

test("nobody listens: of any number of writers at once none sends anything", async () => {
  const writers = [];
  for (const number of [1, 2, 3, 4]) writers.push(await opened(number));
  for (const writer of writers) await writer.commit();
  expect(await heard()).toEqual([]);
});

test("somebody listens: each writer tells, also beside others", async () => {
  const listener = await listen();
  const writers = [await opened(1), await opened(2)];
  for (const writer of writers) await writer.commit();
  await eventually(() => expect(listener.numbers).toEqual([1, 2]));
  await listener.stop();
  // The eavesdropper may hear later than the listener.
  await heard();
  overheard = [];
  await (await opened(3)).commit();
  expect(await heard()).toEqual([]);
});

test("whatever is committed after a listener has begun is told, whenever it was written", async () => {
  const before = await opened(1);
  let hasBegun = false;
  const beginning = listen().finally(() => {
    hasBegun = true;
  });
  // The listener waits for the writer that found nobody. It holds up no writer that comes now.
  await eventually(async () => {
    expect((await eavesdropper.query("select from listeners")).rowCount).toBe(1);
  });
  await (await opened(2)).commit();
  expect(hasBegun).toBe(false);
  await before.commit();
  const listener = await beginning;
  await (await opened(3)).commit();
  await eventually(() => expect(listener.numbers).toEqual(expect.arrayContaining([3])));
  // The listener need not hear what was committed before it. It may hear what was committed while it waited.
  expect(listener.numbers.filter((number) => number !== 2)).toEqual([3]);
  expect((await heard()).includes(text(1))).toBe(false);
  await listener.stop();
});

test("two listeners do not keep each other out, and the second's end leaves the first hearing", async () => {
  const first = await listen();
  const second = await listen();
  await second.stop();
  await (await opened(5)).commit();
  await eventually(() => expect(first.numbers).toEqual([5]));
  await first.stop();
});

test("the row of a listener that ended without a word is forgotten by the next", async () => {
  await eavesdropper.query("insert into listeners (pid) values (0)");
  const listener = await listen();
  expect((await eavesdropper.query("select from listeners where pid = 0")).rowCount).toBe(0);
  await listener.stop();
  expect((await eavesdropper.query("select from listeners")).rowCount).toBe(0);
});

const unheard = () => {
  const lost: Error[] = [];
  return { lost, onText: () => {}, onLost: (error: Error) => void lost.push(error) };
};

test("a server that lets nobody in is given up, and that is no loss of what has begun", async () => {
  const silent = createServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { lost, ...deaf } = unheard();
  const url = `postgres://nobody@127.0.0.1:${(silent.address() as AddressInfo).port}/none`;
  const failure = await listenOn(url, { ...deaf, connectMs: 50 }).catch((error: unknown) => error);
  expect(isPostgresOutage(failure)).toBe(true);
  expect(lost).toEqual([]);
  silent.close();
});

test("a listener does not wait without end for a transaction that has told", async () => {
  const before = await opened(1);
  const { lost, ...deaf } = unheard();
  const failure = await listenOn(mirror.ctx.config.databaseUrl, { ...deaf, waitMs: 100 }).catch(
    (error: unknown) => error,
  );
  expect(isPostgresOutage(failure)).toBe(true);
  expect(lost).toEqual([]);
  await before.commit();
  // Nothing of it is left: the next one begins at once.
  const listener = await listen();
  await (await opened(2)).commit();
  await eventually(() => expect(listener.numbers).toEqual([2]));
  await listener.stop();
});

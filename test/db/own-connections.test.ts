import { afterAll, beforeAll, expect, test } from "vitest";
import { OwnConnections } from "../../db/own-connections.ts";
import { sql } from "../../db/sql.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";

let mirror: TestMirror;
beforeAll(async () => {
  mirror = await openMirror({ web: false });
});
afterAll(() => mirror?.[Symbol.asyncDispose]());

// The suite runs with --throw-deprecation. The driver is about to forbid a second statement on a connection that does
// not pipeline.
test("statements that are asked at once share a connection, and each gets its own rows", async () => {
  const options = { applicationName: "test", answerTimeoutMs: 10_000 };
  const connections = new OwnConnections(mirror.ctx.config.databaseUrl, { count: 1, ...options });
  const ask = (number: number) =>
    connections.rows<[string, string]>({ text: "select $1::int, pg_backend_pid()", values: [String(number)] });
  await ask(0);
  const rows = (await Promise.all([1, 2, 3].map(ask))).flat();
  expect(rows.map(([number]) => number)).toEqual(["1", "2", "3"]);
  expect(new Set(rows.map(([, process]) => process)).size).toBe(1);
  await connections.close();
});

test("a statement that fails takes none with it that was sent behind it", async () => {
  const options = { applicationName: "test", answerTimeoutMs: 10_000 };
  const connections = new OwnConnections(mirror.ctx.config.databaseUrl, { count: 1, ...options });
  const [failed, ...others] = await Promise.allSettled([
    connections.rows({ text: "select 1 / 0" }),
    connections.rows<[string]>({ text: "select 1" }),
    connections.rows<[string]>({ text: "select 2" }),
  ]);
  expect(failed).toMatchObject({ status: "rejected", reason: { code: "22012" } });
  expect(others).toEqual([1, 2].map((number) => ({ status: "fulfilled", value: [[String(number)]] })));
  await connections.close();
});

test("a statement with a name works again after it failed", async () => {
  const options = { applicationName: "test", answerTimeoutMs: 10_000 };
  const connections = new OwnConnections(mirror.ctx.config.databaseUrl, { count: 1, ...options });
  const divide = (by: string) => connections.rows({ name: "divide", text: "select 6 / $1::int", values: [by] });
  await expect(divide("0")).rejects.toMatchObject({ code: "22012" });
  expect(await divide("2")).toEqual([["3"]]);
  await expect(divide("0")).rejects.toMatchObject({ code: "22012" });
  expect(await divide("3")).toEqual([["2"]]);
  await connections.close();
});

test("a connection that breaks fails what was asked of it, and the next statement has a new one", async () => {
  const options = { applicationName: "test", answerTimeoutMs: 10_000 };
  const connections = new OwnConnections(mirror.ctx.config.databaseUrl, { count: 1, ...options });
  const process = () => connections.rows<[string]>({ name: "process", text: "select pg_backend_pid()" });
  const first = (await process()).flat();
  const asleep = connections.rows({ text: "select pg_sleep(60)" });
  const behind = process();
  const failed = Promise.all([
    expect(asleep).rejects.toMatchObject({ code: "57P01" }),
    expect(behind).rejects.toThrow("Connection terminated"),
  ]);
  await mirror.ctx.db.prepared(sql`select pg_terminate_backend(${Number(first[0])})`);
  await failed;
  expect(await process()).not.toEqual([first]);
  await connections.close();
});

test("a statement that is not answered in time fails with those behind it, and the next has a new connection", async () => {
  const connections = new OwnConnections(mirror.ctx.config.databaseUrl, {
    count: 1,
    applicationName: "test",
    answerTimeoutMs: 300,
  });
  const asleep = connections.rows({ text: "select pg_sleep(1)" });
  const behind = connections.rows({ text: "select 1" });
  for (const one of [asleep, behind]) await expect(one).rejects.toThrow("Connection terminated");
  expect(await connections.rows({ text: "select 2" })).toEqual([["2"]]);
  await connections.close();
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { OwnConnections } from "../../db/own-connections.ts";
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
    connections.rows<[number, number]>({ text: "select $1::int, pg_backend_pid()", values: [number] });
  await ask(0);
  const rows = (await Promise.all([1, 2, 3].map(ask))).flat();
  expect(rows.map(([number]) => number)).toEqual([1, 2, 3]);
  expect(new Set(rows.map(([, process]) => process)).size).toBe(1);
  await connections.close();
});

test("a statement that fails takes none with it that was sent behind it", async () => {
  const options = { applicationName: "test", answerTimeoutMs: 10_000 };
  const connections = new OwnConnections(mirror.ctx.config.databaseUrl, { count: 1, ...options });
  const [failed, ...others] = await Promise.allSettled([
    connections.rows({ text: "select 1 / 0" }),
    connections.rows<[number]>({ text: "select 1" }),
    connections.rows<[number]>({ text: "select 2" }),
  ]);
  expect(failed).toMatchObject({ status: "rejected", reason: { code: "22012" } });
  expect(others).toEqual([1, 2].map((number) => ({ status: "fulfilled", value: [[number]] })));
  await connections.close();
});

/** Stores of the versions that Tain works with, and of those that it refuses. */
import { once } from "node:events";
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { postgresTooOld, redisTooOld } from "../../db/unfit.ts";
import { VERSION } from "../../src/version.ts";
import { projectRoot, readPage } from "../docs/markdown.ts";
import { NOWHERE, testEnvironment } from "../support/config.ts";
import { connectTo, openTestDatabase } from "../support/database.ts";
import { startProgram } from "../support/program.ts";

test.each([
  [140_019, `Postgres 14.19 is too old for Tain ${VERSION}: use Postgres 15 or newer`],
  [150_000, undefined],
  [180_004, undefined],
])("Postgres %i: %s", (version, said) => {
  expect(postgresTooOld(version)?.message).toBe(said);
});

test.each([
  ["5.0.14", `Redis 5.0.14 is too old for Tain ${VERSION}: use Redis 6.2 or newer, or Valkey`],
  ["6.0.16", `Redis 6.0.16 is too old for Tain ${VERSION}: use Redis 6.2 or newer, or Valkey`],
  ["6.2.0", undefined],
  ["7.0.15", undefined],
  ["10.0.0", undefined],
])("Redis %s: %s", (version, said) => {
  expect(redisTooOld(version)?.message).toBe(said);
});

test("a process that meets a Redis of before 6.2 says so, and ends as one that must not be started again", async () => {
  const old = await openOldRedis();
  const places = { database: NOWHERE.database, redis: { url: old, prefix: "{t}" }, upstream: NOWHERE.upstream };
  const program = startProgram("workers/scheduler.ts", testEnvironment(places, { LOG_LEVEL: "info" }));
  expect(await program.exited).toBe(78);
  expect(program.lines).toMatchObject([{ msg: expect.stringMatching(/^Redis 6\.0\.16 is too old for Tain /) }]);
});

test("before Postgres 18 keys of deliveries are what they are there: UUIDs of version 7, of the moment, in order", async () => {
  // Without our tables: before 18 the keys of some are made by that function.
  await using database = await openTestDatabase("template1");
  const client = await connectTo(database.url);
  try {
    await client.query("drop function if exists public.uuidv7()");
    await client.query(await readFile(new URL("../../db/uuidv7.sql", import.meta.url), "utf8"));
    const begun = Date.now();
    const { rows } = await client.query<{ id: string }>(
      "select public.uuidv7() as id from generate_series(1, 200), pg_sleep(0.0001)",
    );
    const ids = rows.map(({ id }) => id);
    expect(new Set(ids).size).toBe(200);
    expect(
      ids.filter((id) => !/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)),
    ).toEqual([]);
    const times = ids.map((id) => Number.parseInt(id.replace("-", "").slice(0, 12), 16));
    // Postgres's clock is this machine's.
    expect(times.every((time) => time >= begun - 1 && time <= Date.now())).toBe(true);
    const prefixes = ids.map((id) => id.slice(0, 18));
    expect(prefixes).toEqual(prefixes.toSorted());
  } finally {
    await client.end();
  }
});

/** Words that Postgres has learnt since 15, and that a statement of ours might come to use. */
const SINCE_15 = [
  /\breturning\b[^`;]*?\b(?:old|new)\.\w+/i,
  /\bnot matched by source\b/i,
  /\b(?:any_value|array_(?:sort|reverse|shuffle|sample)|casefold|uuid_extract_\w+|pg_input_is_valid)\s*\(/i,
  /\bjson_(?:table|value|query|exists|scalar|serialize|arrayagg|objectagg)\s*\(/i,
  /\bis json\b/,
];

test("no statement asks for what Postgres 15 has not (`npm run proofs stores` has it read them)", () => {
  expect(SINCE_15.filter((newer) => newer.test("returning target_id, old.wanted_id"))).toHaveLength(1);
  const files = globSync(["db/**/*.{ts,sql}", "src/**/*.ts", "workers/*.ts"], { cwd: projectRoot });
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((file) => {
    const text = readPage(file);
    return SINCE_15.flatMap((newer) => newer.exec(text)?.[0] ?? []).map((words) => `${file}: ${words}`);
  });
  expect(found).toEqual([]);
});

/** Says that it is 6.0.16 and yes to all else: a Redis as old is not to be had here. */
async function openOldRedis(): Promise<string> {
  const info = "redis_version:6.0.16\r\nloading:0\r\n";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (text) => {
      for (const [, , command] of String(text).matchAll(/\*\d+\r\n\$(\d+)\r\n(\w+)\r\n/g)) {
        socket.write(command?.toLowerCase() === "info" ? `$${info.length}\r\n${info}\r\n` : "+OK\r\n");
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  return `redis://127.0.0.1:${address.port}`;
}

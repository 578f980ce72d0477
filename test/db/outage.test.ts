import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { isPoolExhausted, isPostgresOutage, MESSAGES } from "../../db/outage.ts";

const { resolve } = createRequire(import.meta.url);

test("what node-postgres says without a code is still what its source says", async () => {
  const client = resolve("pg").replace(/lib\/index\.js$/, "lib/client.js");
  const sources = await Promise.all([client, resolve("pg-pool")].map((path) => readFile(path, "utf8")));
  for (const message of MESSAGES)
    expect(
      sources.some((source) => source.includes(`new Error('${message}'`)),
      message,
    ).toBe(true);
});

test("a message that begins like an outage's is none", () => {
  expect(isPostgresOutage(new Error("Connection terminated"))).toBe(true);
  expect(isPostgresOutage(new Error("Connection terminated by a rule of ours"))).toBe(false);
});

test("a pool whose connections are all in use is told from a Postgres that is away", () => {
  const [exhausted] = [...MESSAGES].filter((message) => isPoolExhausted(new Error(message)));
  expect(exhausted).toBe("timeout exceeded when trying to connect");
  expect(isPoolExhausted(new Error("Connection terminated due to connection timeout"))).toBe(false);
});

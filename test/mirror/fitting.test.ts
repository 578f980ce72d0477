import { expect, test } from "vitest";
import { fitting } from "../../src/mirror/store/fitting.ts";

test.each([
  ["integer", 3_000_000_000, 2_147_483_647],
  ["integer", -3_000_000_000, -2_147_483_648],
  ["integer", 7, 7],
  ["integer", 1.5, 1],
  ["integer", "9007199254740993", 2_147_483_647],
  ["integer", "many", null],
  ["bigint", "9007199254740993", Number.MAX_SAFE_INTEGER],
  ["bigint", -1e30, Number.MIN_SAFE_INTEGER],
  ["boolean", "yes", null],
  ["timestamptz", "2026-01-28T08:00:00Z", "2026-01-28T08:00:00Z"],
  ["timestamptz", "2025-02-30T08:00:00Z", "2025-03-02T08:00:00.000Z"],
  ["timestamptz", "0000-12-31T16:00:00Z", "0001-01-01T00:00:00Z"],
  ["timestamptz", "+012345-01-01T00:00:00Z", "9999-12-31T23:59:59Z"],
  ["timestamptz", "soon", null],
  ["timestamptz", 5, null],
] as const)("a column of type %s holds of %j the nearest that it can hold: %j", (type, value, held) => {
  expect(fitting(value, { type, isNullable: true, isIndexed: false })).toBe(held);
});

test("where null cannot stand, the least value does", () => {
  const required = { isNullable: false, isIndexed: false } as const;
  expect(fitting("many", { ...required, type: "integer" })).toBe(0);
  expect(fitting("yes", { ...required, type: "boolean" })).toBe(false);
  expect(fitting("soon", { ...required, type: "timestamptz" })).toBe("0001-01-01T00:00:00Z");
  expect(fitting(null, { ...required, type: "timestamptz" })).toBe("0001-01-01T00:00:00Z");
});

test("a text is cut where it is part of an index, and nowhere else", () => {
  const text = { type: "text", isNullable: true } as const;
  const long = "\u20ac".repeat(3_000);
  const held = fitting(long, { ...text, isIndexed: true });
  // Postgres: "index row size exceeds btree version 4 maximum 2704".
  expect(Buffer.byteLength(String(held))).toBeLessThan(2_000);
  expect(long.startsWith(String(held))).toBe(true);
  expect(fitting(long, { ...text, isIndexed: false })).toBe(long);
  expect(fitting("main", { ...text, isIndexed: true })).toBe("main");
});

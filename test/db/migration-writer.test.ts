/** `npm run migration`, which writes the next migration. */
import { index, integer, pgTable, text } from "drizzle-orm/pg-core";
import { expect, test } from "vitest";
import { stepsOf } from "../../db/apply.ts";
import { oldestTainOf } from "../../db/migrations.ts";
import { timestamptz } from "../../db/schema/columns.ts";
import { migrationFiles, schemaChange } from "../../scripts/generate/migration.ts";
import * as schema from "../../src/schema.ts";

const NEXT = { version: 55, name: "reasons", oldestTain: "0.2.0" };

test("the snapshot is of the present schema: a new migration has nothing to change (else: npm run migration -- --name NAME)", async () => {
  expect((await schemaChange()).statements).toEqual([]);
});

test("a new table is one migration, with its indexes", async () => {
  const reasons = pgTable("reasons", { id: integer().primaryKey(), why: text() }, (t) => [
    index("reasons_why").on(t.why),
  ]);
  const { statements } = await schemaChange({ tables: { ...schema, reasons } });
  const files = migrationFiles(statements, NEXT);
  expect(files.map(({ name }) => name)).toEqual(["0055_reasons.sql"]);
  const [{ name, text: written } = { name: "", text: "" }] = files;
  expect(oldestTainOf(name, written)).toBe("0.2.0");
  expect(stepsOf(written)).toEqual([
    'CREATE TABLE "reasons" (\n\t"id" integer PRIMARY KEY,\n\t"why" text\n)',
    'CREATE INDEX "reasons_why" ON "reasons" ("why")',
  ]);
});

test("an index of a table in use is built by a stepwise migration of its own, after what it needs", () => {
  const statements = [
    'ALTER TABLE "labels" ADD COLUMN "why" text;',
    'CREATE UNIQUE INDEX "labels_why" ON "labels" ("why") WHERE ("why" is not null);',
  ];
  expect(migrationFiles(statements, NEXT)).toEqual([
    {
      name: "0055_reasons.sql",
      text: '-- Oldest Tain that works beside this: 0.2.0\nALTER TABLE "labels" ADD COLUMN "why" text;\n',
    },
    {
      name: "0056_reasons_indexes.sql",
      text:
        "-- Oldest Tain that works beside this: 0.2.0\n-- One statement at a time.\n" +
        'create unique index concurrently if not exists labels_why ON "labels" ("why") WHERE ("why" is not null);\n',
    },
  ]);
});

test("without statements the migration is empty but for the oldest Tain", () => {
  const text = "-- Oldest Tain that works beside this: 0.2.0\n";
  expect(migrationFiles([], NEXT)).toEqual([{ name: "0055_reasons.sql", text }]);
});

test("where a table may have another name only, a hint is asked for, and obeyed", async () => {
  const { upkeep: _, ...others } = schema;
  const care = pgTable("care", { task: text().primaryKey(), doneUntil: timestamptz("done_until").notNull() });
  const tables = { ...others, care };
  await expect(schemaChange({ tables })).rejects.toThrow("table public.care: rename of a deleted table or a new one?");
  const hints = [{ type: "rename", kind: "table", from: ["public", "upkeep"], to: ["public", "care"] } as const];
  const { statements } = await schemaChange({ tables, hints: [...hints] });
  expect(statements).toContain('ALTER TABLE "upkeep" RENAME TO "care";');
});

/** Every table's keys begin with the repository's id. The others are listed, each with the reason. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { connectTo, openTestDatabase } from "../support/database.ts";

/** Grows with what is mirrored, and is not distributed by repository. docs/scale.md says what that means. */
const BY_ANOTHER_KEY = {
  deliveries: "hook and GUID find a delivery that is sent again",
  refresh_marks: "kind",
  users: "an account is shared by all repositories",
  account_names: "account",
  shapes: "what many embedded rows share",
  validators: "credential and path",
  forwarded_answers: "what is asked of upstream, kept by question",
  former_names: "a name finds a repository",
  problems: "task",
  target_cursors: "target",
  target_deliveries: "target",
  target_asks: "target",
  writes: "a caller's write",
  audit_log: "an act of an operator or a caller",
};

/** Has a row for each repository at most, and is found by its id. */
const REPOSITORY = "repositories";

/** Has few rows, however much is mirrored: an engine that shards Postgres keeps it whole on each server. */
const SMALL = [
  "activity",
  "api_tokens",
  "eras",
  "event_log",
  "exclusive_work",
  "installations",
  "listeners",
  "origin",
  "schema_migrations",
  "selections",
  "targets",
  "token_owners",
  "turns",
  "upkeep",
  "upstream_lacks",
];

interface Key {
  table: string;
  key: string;
  leads: string;
}

test("primary and unique keys lead with the repository's id, or the table is listed with another", async () => {
  await using database = await openTestDatabase();
  const client = await connectTo(database.url);
  const { rows: keys } = await client.query<Key>(`
    select c.relname as table, i.indexrelid::regclass::text as key, a.attname as leads
      from pg_class c join pg_index i on i.indrelid = c.oid join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and i.indisunique`);
  const { rows: tables } = await client.query<{ name: string }>(`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`);
  await client.end();
  const others = keys.filter(({ table, leads }) => leads !== "repository_id" && table !== REPOSITORY);
  expect(new Set(others.map(({ table }) => table))).toEqual(new Set([...Object.keys(BY_ANOTHER_KEY), ...SMALL]));
  expect(keys.filter(({ table, leads }) => table === REPOSITORY && leads !== "id")).toEqual([]);
  // A table without any key could not be distributed at all.
  const keyed = new Set(keys.map(({ table }) => table));
  expect(tables.filter(({ name }) => !keyed.has(name))).toEqual([]);
});

test("foreign keys lie within a repository, or lead from one small or shared table to another", async () => {
  await using database = await openTestDatabase();
  const client = await connectTo(database.url);
  const { rows } = await client.query<{ from: string; to: string; leads: string }>(`
    select c.conrelid::regclass::text as from, c.confrelid::regclass::text as to, a.attname as leads
      from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
      where c.contype = 'f' and c.connamespace = 'public'::regnamespace`);
  await client.end();
  const known = new Set([...Object.keys(BY_ANOTHER_KEY), ...SMALL]);
  expect(
    rows.filter(({ from, to, leads }) => leads !== "repository_id" && !(known.has(from) && known.has(to))),
  ).toEqual([]);
});

test("docs/scale.md has each table, once", async () => {
  await using database = await openTestDatabase();
  const client = await connectTo(database.url);
  const { rows } = await client.query<{ name: string }>(`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`);
  await client.end();
  const page = await readFile(new URL("../../docs/scale.md", import.meta.url), "utf8");
  const [, section = ""] = page.split("\n## How tables are distributed\n");
  const [own = ""] = section.split("\n## ");
  const lines = own.split("\n").filter((line) => line.startsWith("| `") || line.startsWith("| all"));
  const named = lines.flatMap((line) => [...(line.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(named.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});

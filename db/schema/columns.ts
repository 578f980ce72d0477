import { getColumns, is, SQL, sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  customType,
  getTableConfig,
  integer,
  json,
  type PgTable,
  timestamp,
} from "drizzle-orm/pg-core";
import { DIALECT, type PgType } from "../sql.ts";

/** A whole number that JavaScript holds exactly: ids and counts. */
export const int8 = (name = "") => bigint(name, { mode: "number" });
export const timestamptz = (name = "") => timestamp(name, { withTimezone: true });
export const bytea = customType<{ data: Buffer }>({ dataType: () => "bytea" });
export const tsvector = customType<{ data: string }>({ dataType: () => "tsvector" });

/** What every mirrored row carries beside the resource's own columns. */
export const observed = {
  /**
   * Everything upstream sent, as a template: see `src/mirror/documents/documents.ts`. JSON as its text, in upstream's own
   * order of keys; unlike jsonb it accepts `\u0000` and lone surrogates, which upstream does send.
   */
  document: json().notNull(),
  /** Stamps of the document's keys that differ from the row's own: see `src/mirror/store/merge-rule.ts`. */
  keyStamps: json("key_stamps"),
  /** When the row's newest observation was made, by our clock. */
  seenAt: timestamptz("seen_at").notNull(),
  /** Whether that observation was read from upstream (true) or pushed by a webhook (false). */
  seenByRead: boolean("seen_by_read").notNull(),
  /**
   * When a value that is shown last became another: by the row's own `updated_at` if that moved, otherwise by our clock.
   * Null: not since the row was first stored.
   */
  changedAt: timestamptz("changed_at"),
  /** Set when upstream deleted the resource: the row is a tombstone. By our clock. */
  deletedAt: timestamptz("deleted_at"),
  /** Grows with every change that the mirror applies, over all tables. */
  revision: int8("revision").default(sql`nextval('revision'::regclass)`).notNull(),
};

/** The columns of every list that is stored whole: see `src/mirror/store/lists.ts`. */
export const listed = {
  repositoryId: int8("repository_id").notNull(),
  /** The number of the pull request. */
  number: integer().notNull(),
  /** From 0, in upstream's order. */
  position: integer().notNull(),
  /** As in `observed`. */
  document: json().notNull(),
};

export interface ColumnType {
  type: PgType;
  isNullable: boolean;
  /** Whether it is a part of an index's rows, whose length is bounded. */
  isIndexed: boolean;
}

/** The columns of a table by their names in Postgres. */
export function columnsOf(table: PgTable): Readonly<Record<string, ColumnType>> {
  const indexed = indexedIn(table);
  const columns = Object.values(getColumns(table)).map((column) => {
    const base = column.getSQLType().replace("timestamp with time zone", "timestamptz");
    const type = `${base}${"[]".repeat(column.dimensions ?? 0)}` as PgType;
    return [column.name, { type, isNullable: !column.notNull, isIndexed: indexed.has(column.name) }] as const;
  });
  return Object.fromEntries(columns);
}

/** The names of columns that are keys of an index, as such or within an expression. */
function indexedIn(table: PgTable): ReadonlySet<string> {
  const { indexes, primaryKeys, uniqueConstraints, columns } = getTableConfig(table);
  const ofConstraints = [...primaryKeys, ...uniqueConstraints].flatMap((one) => one.columns);
  const keys = [...indexes.flatMap(({ config }) => config.columns), ...ofConstraints];
  const named = keys.flatMap((key) =>
    is(key, SQL) ? (DIALECT.sqlToQuery(key).sql.match(/\b[a-z_]+\b/g) ?? []) : "name" in key ? (key.name ?? []) : [],
  );
  return new Set([...named, ...columns.filter(({ primary }) => primary).map(({ name }) => name)]);
}

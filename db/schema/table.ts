import type { PgType } from "../sql.ts";

/** A table of resources. A test compares it with the table that the migrations make. */
export interface Table {
  name: string;
  columns: Readonly<Record<string, { type: PgType; isNullable: boolean }>>;
}

/** `text?` is a text or null. Postgres itself makes every `tsvector`. */
export function table(name: string, columns: Readonly<Record<string, PgType | `${PgType}?`>>): Table {
  const described = Object.entries(columns).map(([column, text]) => {
    const isNullable = text.endsWith("?");
    // TypeScript cannot infer the type of the text without its `?`.
    return [column, { type: (isNullable ? text.slice(0, -1) : text) as PgType, isNullable }] as const;
  });
  return { name, columns: Object.fromEntries(described) };
}

/** What every mirrored row carries beside the resource's own columns. */
export const observed = {
  /**
   * Everything upstream sent, as a template: see `src/mirror/documents.ts`. JSON as its text, in upstream's own
   * order of keys; unlike jsonb it accepts `\u0000` and lone surrogates, which upstream does send.
   */
  document: "json",
  /** Stamps of the document's keys that differ from the row's own: see `src/mirror/store/merge-rule.ts`. */
  key_stamps: "json?",
  /** When the row's newest observation was made, by our clock. */
  seen_at: "timestamptz",
  /** Whether that observation was read from upstream (true) or pushed by a webhook (false). */
  seen_by_read: "boolean",
  /**
   * When a value that is shown last became another: by the row's own `updated_at` if that moved, otherwise by our clock.
   * Null: not since the row was first stored.
   */
  changed_at: "timestamptz?",
  /** Set when upstream deleted the resource: the row is a tombstone. By our clock. */
  deleted_at: "timestamptz?",
  /** Grows with every change that the mirror applies, over all tables. */
  revision: "bigint",
} as const;

/** The columns of every list that is stored whole: see `src/mirror/store/lists.ts`. */
export const listed = {
  repository_id: "bigint",
  /** The number of the pull request. */
  number: "integer",
  /** From 0, in upstream's order. */
  position: "integer",
  /** As in `observed`. */
  document: "json",
} as const;

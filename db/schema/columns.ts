import { bigint, customType, sql, timestamp } from "../drizzle.ts";

/**
 * JSON kept as its text, in upstream's own key order. Neither the driver nor Postgres parses it on the way out,
 * and unlike jsonb it accepts `\u0000` and lone surrogates, which upstream does send.
 */
export const jsonText = customType<{ data: string; driverData: string }>({ dataType: () => "json" });

/** Ids are 64-bit at upstream and stay below 2^53, so a number is exact. */
export const id = (name: string) => bigint(name, { mode: "number" });

/** Few enough to be kept together, as on one page of a list. The driver answers them as strings. */
export const idList = customType<{ data: string[] }>({ dataType: () => "bigint[]" });

export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

export const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => "bytea" });

/** Words to search by; Postgres makes them itself, see `0007_search.sql`. */
export const words = customType<{ data: string }>({ dataType: () => "tsvector" });

/** What every mirrored row carries beside the resource's own columns. */
export const observed = {
  /** Everything upstream sent, as a template: see `src/mirror/store/template.ts`. */
  document: jsonText("document").notNull(),
  /** Stamps of the document's keys that differ from the row's own: see `src/mirror/store/merge-rule.ts`. */
  keyStamps: jsonText("key_stamps"),
  /** When the row's newest observation was made, by our clock. */
  seenAt: instant("seen_at").notNull(),
  /** Whether that observation was read from upstream (true) or pushed by a webhook (false). */
  seenByRead: customType<{ data: boolean; driverData: boolean }>({ dataType: () => "boolean" })(
    "seen_by_read",
  ).notNull(),
  /** Set when upstream deleted the resource: the row is a tombstone. By our clock. */
  deletedAt: instant("deleted_at"),
  /** Grows with every change that the mirror applies, over all tables. */
  revision: bigint("revision", { mode: "number" }).notNull().default(sql`nextval('revision')`),
};

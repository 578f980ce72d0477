import type { Legacy } from "./legacy.ts";

export { type Database, openDatabase, type Transaction } from "./database.ts";
/** A database or a transaction in it, to the old ways of running statements. */
export type Queries = Pick<Legacy, "execute" | "select" | "insert" | "update" | "delete">;

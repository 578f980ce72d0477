import type pg from "pg";
import { drizzle, type NodePgDatabase } from "./drizzle.ts";

/** The old ways to run statements, until every room has left them. Nothing new uses them. */
export class Legacy {
  readonly _: NodePgDatabase["_"];
  readonly execute: NodePgDatabase["execute"];
  readonly select: NodePgDatabase["select"];
  readonly insert: NodePgDatabase["insert"];
  readonly update: NodePgDatabase["update"];
  readonly delete: NodePgDatabase["delete"];

  constructor(client: pg.Pool | pg.PoolClient) {
    const database = drizzle(client);
    this._ = database._;
    this.execute = database.execute.bind(database);
    this.select = database.select.bind(database);
    this.insert = database.insert.bind(database);
    this.update = database.update.bind(database);
    this.delete = database.delete.bind(database);
  }
}

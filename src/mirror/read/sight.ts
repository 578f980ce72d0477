import { type Sql, sql } from "../../../db/sql.ts";

/** Whose eyes look: they see every public repository, and these private ones, by id. */
export interface Sight {
  privateRepositories: "all" | readonly number[];
}

/** Whether a private repository is seen. */
export function sees({ privateRepositories }: Sight, repositoryId: number): boolean {
  return privateRepositories === "all" || privateRepositories.includes(repositoryId);
}

/** The condition under which the repository `alias` is seen. */
export function visible(alias: Sql, { privateRepositories }: Sight): Sql {
  if (privateRepositories === "all") return sql`true`;
  if (privateRepositories.length === 0) return sql`not ${alias}.private`;
  return sql`(not ${alias}.private or ${alias}.id = any(${privateRepositories}::bigint[]))`;
}

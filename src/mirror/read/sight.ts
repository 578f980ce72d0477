import type { Statement } from "../../../db/statement.ts";

/** Whose eyes look: they see every public repository, and these private ones, by id. */
export interface Sight {
  privateRepositories: "all" | readonly number[];
}

/** Whether a private repository is seen. */
export function sees({ privateRepositories }: Sight, repositoryId: number): boolean {
  return privateRepositories === "all" || privateRepositories.includes(repositoryId);
}

/** The condition under which the repository `alias` is seen. */
export function visible(statement: Statement, alias: string, { privateRepositories }: Sight): string {
  if (privateRepositories === "all") return "true";
  if (privateRepositories.length === 0) return `not ${alias}.private`;
  return `(not ${alias}.private or ${alias}.id = any(${statement.value(privateRepositories)}::bigint[]))`;
}

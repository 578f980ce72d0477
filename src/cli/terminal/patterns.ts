import { eq } from "drizzle-orm";
import type { SyncState } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { exceptionIn, isPattern } from "../../config/values.ts";
import type { Context } from "../../context.ts";
import { formerNames, repositories, repositorySyncs } from "../../schema.ts";
import { UsageError } from "./command.ts";

/** The words in lower case, each once. @throws UsageError for a word that is no pattern, or if there are no words */
export function readPatterns(command: string, words: readonly string[]): string[] {
  if (words.length === 0)
    throw new UsageError(`tain ${command} needs to know what: owner/name, or owner/* in quotes for all of an owner's`);
  for (const word of words)
    if (!isPattern(word)) throw new UsageError(`${word} is neither owner/name nor owner/*${hintOf(word)}`);
  return [...new Set(words.map((word) => word.toLowerCase()))];
}

/** Same, but for what is mirrored, from which `!owner/name` is excepted. */
export function readTracked(command: string, words: readonly string[]): string[] {
  const plain = words.map((word) => (exceptionIn(word) === null ? word : word.slice(1)));
  readPatterns(command, plain);
  return [...new Set(words.map((word) => word.toLowerCase()))];
}

/** Same, but for commands that work on single repositories. */
export function readNames(words: readonly string[]): string[] {
  for (const word of words) {
    if (!isPattern(word) || word.endsWith("/*")) throw new UsageError(`${word} is not owner/name${hintOf(word)}`);
  }
  return [...new Set(words.map((word) => word.toLowerCase()))];
}

export interface MatchedRepository {
  id: number;
  fullName: string;
  state: SyncState;
  problem: string | null;
}

/** The repositories that a pattern names, by present or former names; also those that are mirrored no more. */
export async function findMatches({ db }: Pick<Context, "db">, pattern: string): Promise<MatchedRepository[]> {
  const condition = pattern.endsWith("/*")
    ? sql`folded(split_part(${repositories.fullName}, '/', 1)) = split_part(${pattern}, '/', 1)`
    : sql`(folded(${repositories.fullName}) = ${pattern} or exists (select from ${formerNames}
        where ${formerNames.repositoryId} = ${repositories.id} and ${formerNames.fullName} = ${pattern}))`;
  return await db
    .select({
      id: repositories.id,
      fullName: repositories.fullName,
      state: repositorySyncs.state,
      problem: repositorySyncs.problem,
    })
    .from(repositories)
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositories.id))
    .where(condition)
    .orderBy(sql`folded(${repositories.fullName})`);
}

function hintOf(word: string): string {
  const inAddress = /^(?:https?:\/\/[^/]+|git@[^:]+:)\/?([\w.-]+\/[\w.-]+?)(?:\.git)?\/?$/.exec(word)?.[1];
  if (inAddress) return `: write ${inAddress}`;
  return word.includes("/") ? "" : ": the owner is missing, or the name";
}

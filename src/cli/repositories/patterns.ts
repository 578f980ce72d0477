import type { SyncState } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { isPattern } from "../../config/values.ts";
import type { Context } from "../../context.ts";
import { UsageError } from "../command.ts";

/** The words in lower case, each once. @throws UsageError for a word that is no pattern, or if there are no words */
export function readPatterns(command: string, words: readonly string[]): string[] {
  if (words.length === 0)
    throw new UsageError(`tain ${command} needs to know what: owner/name, or owner/* in quotes for all of an owner's`);
  for (const word of words)
    if (!isPattern(word)) throw new UsageError(`${word} is neither owner/name nor owner/*${hintOf(word)}`);
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
    ? sql`folded(split_part(r.full_name, '/', 1)) = split_part(${pattern}, '/', 1)`
    : sql`(folded(r.full_name) = ${pattern}
        or exists (select from former_names f where f.repository_id = r.id and f.full_name = ${pattern}))`;
  return await db.query(sql`
    select r.id::float8 as id, r.full_name as "fullName", s.state, s.problem
      from repositories r join repository_syncs s on s.repository_id = r.id
      where ${condition} order by folded(r.full_name)`);
}

function hintOf(word: string): string {
  const inAddress = /^(?:https?:\/\/[^/]+|git@[^:]+:)\/?([\w.-]+\/[\w.-]+?)(?:\.git)?\/?$/.exec(word)?.[1];
  if (inAddress) return `: write ${inAddress}`;
  return word.includes("/") ? "" : ": the owner is missing, or the name";
}

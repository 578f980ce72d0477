import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Clause } from "./query.ts";

/** A word that was looked for, as it stands in a fragment: from the first index to before the second. */
interface TextMatch {
  text: string;
  indices: [number, number];
}

export interface Fragment {
  fragment: string;
  matches: TextMatch[];
}

/** Stand before and after a found word. */
const START = "\u0002";
const END = "\u0003";
/** How much of a long text is shown before and after the first word that was found. */
const CHARACTERS_AROUND = 100;

/** The words that a search looks for. Those that must not stand there are left out. Pure. */
export function textsIn(clauses: readonly Clause[]): string[] {
  return clauses.flatMap((clause) => {
    if (clause.kind === "text") return [clause.text];
    return clause.kind === "all" || clause.kind === "any" ? textsIn(clause.of) : [];
  });
}

/** Where these words stand in each text, as the search finds them: by their stems. Null: nowhere. */
export async function findFragments(
  db: Database,
  words: readonly string[],
  texts: readonly string[],
): Promise<(Fragment | null)[]> {
  if (words.length === 0) return texts.map(() => null);
  const query = sql.join(
    words.map((word) => sql`search_query(${word})`),
    " || ",
  );
  // As in `search_text`, letters and digits alone make words. Each of the others leaves room for itself.
  const plain = texts.map((text) => text.replace(/[^\p{L}\p{N}]/gu, (other) => " ".repeat(other.length)));
  const rows = await db.prepared<{ marked: string }>(sql`
    select ts_headline('words', x.text, ${query}, ${`HighlightAll=true, StartSel=${START}, StopSel=${END}`}) as marked
      from unnest(${plain}::text[]) with ordinality x(text, at) order by x.at`);
  return rows.map(({ marked }, at) => fragmentOf(marked, texts[at] ?? ""));
}

/** The part of a text around the first of its words that are marked as found. Null: none is. Pure. */
export function fragmentOf(marked: string, text: string): Fragment | null {
  const found: [number, number][] = [];
  let length = 0;
  for (const [at, piece] of marked.split(START).entries()) {
    if (at > 0) found.push([length, length + piece.indexOf(END)]);
    length += piece.length - (at > 0 ? END.length : 0);
  }
  const [first] = found;
  if (!first) return null;
  const from = text.length <= 2 * CHARACTERS_AROUND ? 0 : Math.max(0, first[0] - CHARACTERS_AROUND);
  const to = Math.min(text.length, Math.max(first[1], from + 2 * CHARACTERS_AROUND));
  const matches = found
    .filter(([, end]) => end <= to)
    .map(([start, end]): TextMatch => ({ text: text.slice(start, end), indices: [start - from, end - from] }));
  return { fragment: text.slice(from, to), matches };
}

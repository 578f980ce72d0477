import { LRUCache } from "lru-cache";

/**
 * A text in which a word comes again and again (in what is shown of a user, the login, in a dozen addresses), without what it
 * has in common with others of its kind: a fifth of it.
 */
export interface RepeatingText {
  word: string;
  /** Up to where the word comes for the second time. */
  head: string;
  /** What stands behind that and each later one, shared by all texts that have the same. */
  tail: readonly string[];
}

const FEWEST = 4;
const LATIN1 = /^[\0-\xff]*$/;
/** There are few, one for each shape and address; a text whose tail is like no other's keeps its own. */
const tails = new LRUCache<string, readonly string[]>({ max: 1_000 });

/** The text itself where the word does not come often enough to save anything. */
export function condense(text: string, word: string): RepeatingText | string {
  if (word === "" || !LATIN1.test(text)) return text;
  const [before = "", between = "", ...rest] = text.split(word);
  if (rest.length < FEWEST) return text;
  const key = JSON.stringify(rest);
  const tail = tails.get(key) ?? rest;
  tails.set(key, tail);
  // A copy: a part of a string holds the whole of it in memory.
  const head = Buffer.from(before + word + between, "latin1").toString("latin1");
  return { word, head, tail };
}

export function expand(condensed: RepeatingText | string): string {
  if (typeof condensed === "string") return condensed;
  let text = condensed.head;
  for (const part of condensed.tail) text += condensed.word + part;
  return text;
}

/** Characters of its own, roughly. */
export function lengthOf(condensed: RepeatingText | string): number {
  return typeof condensed === "string" ? condensed.length : condensed.head.length + condensed.word.length;
}

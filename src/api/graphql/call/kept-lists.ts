import { Kept } from "../../../mirror/unchanged/unchanged.ts";

// What is kept of lists between queries: the texts of their issues, and their sizes.

/**
 * The texts that were written of a list's resources, by each resource's number or id in the list: an issue's number.
 */
export interface WrittenTexts extends Pick<IssueTexts, "get" | "add"> {
  isEmpty: boolean;
}

/** How much memory a text takes besides its characters. */
const TEXT_BYTES = 80;
/** How much of the room one repository may take: a large one, in the view that everybody asks for, may take most. */
const LARGEST_REPOSITORY = 3 / 4;

/** The JSON text of one repository's issues in one view, by their numbers. */
export class IssueTexts {
  readonly #texts = new Map<number, string>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get(number: number): string | undefined {
    return this.#texts.get(number);
  }

  add(number: number, text: string): void {
    if (this.#texts.has(number)) return;
    // The text is copied into one string. Otherwise the hundred pieces that it is made of would stay in memory.
    const flat = Buffer.from(text).toString();
    this.#texts.set(number, flat);
    this.#bytes += flat.length + TEXT_BYTES;
  }
}

/** @param maxBytes 0: nothing is kept */
export function openIssueTexts(maxBytes: number): Kept<IssueTexts> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes, largestPart: LARGEST_REPOSITORY });
}

/** How many rows a list has, and the sum of what was measured of them. */
export interface Count {
  count: number;
  sum: number;
}

/** Enough for 10,000 counts, roughly. */
const MAX_COUNT_BYTES = 8 * 1024 * 1024;
const BYTES_PER_COUNT = 50;

/** Sizes of connections that were counted before. */
export function openCounts(): Kept<Count> {
  return new Kept({ maxBytes: MAX_COUNT_BYTES, bytesOf: () => BYTES_PER_COUNT });
}

import { Kept } from "../../../mirror/unchanged/kept.ts";

/** The room that a text takes beside its characters. */
const OVERHEAD_BYTES = 80;
/** A large repository in the one view that everybody asks for may take most of the room. */
const LARGEST_PART = 3 / 4;

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
    // One string, rather than the hundred that it was put together from, which would all be kept with it.
    const flat = Buffer.from(text).toString();
    this.#texts.set(number, flat);
    this.#bytes += flat.length + OVERHEAD_BYTES;
  }
}

/** @param maxBytes 0: nothing is kept */
export function openIssueTexts(maxBytes: number): Kept<IssueTexts> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes, largestPart: LARGEST_PART });
}

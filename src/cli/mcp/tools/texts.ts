import { grouped } from "../../terminal/output.ts";

/** The longest text that people can write at the service. */
export const LONGEST_TEXT = 65_536;
/** All texts of one answer: about 50,000 words of a model. */
const MOST_TOGETHER = 200_000;

/** Bounds the texts of one answer: each by itself, and all together. */
export class Texts {
  readonly #mostEach: number;
  #left = MOST_TOGETHER;
  #cut = 0;
  #isFull = false;

  constructor(mostEach: number) {
    this.#mostEach = mostEach;
  }

  /** The text, or its beginning and how much is missing. */
  bounded(text: string | null): string | null {
    if (text === null) return null;
    const most = Math.min(this.#mostEach, this.#left);
    this.#left -= Math.min(text.length, most);
    if (text.length <= most) return text;
    this.#cut += 1;
    this.#isFull ||= most < this.#mostEach;
    // A cut may have halved a character.
    const shown = text.slice(0, most).toWellFormed();
    return `${shown} … [cut: ${grouped(most)} of ${grouped(text.length)} characters]`;
  }

  /** How to ask for what was cut off. */
  get more(): string[] {
    if (this.#cut === 0) return [];
    const fewer = this.#isFull ? " and fewer per page, since all texts together were too long" : "";
    return [`${this.#cut} texts were cut: ask again with max_text (up to ${LONGEST_TEXT})${fewer}`];
  }
}

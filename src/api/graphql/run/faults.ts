import type { GraphQLError } from "graphql";

/** Where something stands in the answer. */
export interface ResponsePath {
  above: ResponsePath | undefined;
  key: string | number;
}

export function pathOf(place: ResponsePath): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: ResponsePath | undefined = place; at; at = at.above) path.push(at.key);
  return path.reverse();
}

/** What went wrong in one answer. */
export class Faults {
  /** Those that are told. */
  readonly errors: GraphQLError[] = [];
  /** The places that are null because of an error; what goes wrong below them is not told. */
  readonly #nulled = new Set<string>();
  #count = 0;

  /** How much went wrong, told or not. */
  get count(): number {
    return this.#count;
  }

  /** @param path of what is null now */
  add(error: GraphQLError, path: readonly (string | number)[]): void {
    this.#count += 1;
    for (let length = path.length; length >= 0; length--)
      if (this.#nulled.has(JSON.stringify(path.slice(0, length)))) return;
    this.#nulled.add(JSON.stringify(path));
    this.errors.push(error);
  }
}

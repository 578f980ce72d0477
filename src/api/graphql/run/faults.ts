import type { GraphQLError } from "graphql";

/** The place of a value in the answer. */
export interface ResponsePath {
  above: ResponsePath | undefined;
  key: string | number;
}

export function pathOf(place: ResponsePath): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: ResponsePath | undefined = place; at; at = at.above) path.push(at.key);
  return path.reverse();
}

/** Collects the errors of one answer. */
export class Faults {
  /** The errors that the answer shows. */
  readonly errors: GraphQLError[] = [];
  /** The places that are null because of an error. Errors below such a place are not shown. */
  readonly #nulled = new Set<string>();
  #count = 0;

  /** How many errors occurred, shown or not. */
  get count(): number {
    return this.#count;
  }

  /** @param path the path of the value that is null because of the error */
  add(error: GraphQLError, path: readonly (string | number)[]): void {
    this.#count += 1;
    for (let length = path.length; length >= 0; length--)
      if (this.#nulled.has(JSON.stringify(path.slice(0, length)))) return;
    this.#nulled.add(JSON.stringify(path));
    this.errors.push(error);
  }
}

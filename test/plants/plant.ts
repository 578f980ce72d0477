/** A small bug that some test must find. */
export interface Plant {
  name: string;
  /** The number of the property in docs/architecture.md that no longer holds. */
  property: number;
  /** What the mirror then does wrong, as a sentence. */
  does: string;
  file: string;
  /** Texts that each stand once in the file, with the texts that replace them. */
  replaces: readonly (readonly [string, string])[];
  /** The test files that should find the bug. All other files run only when these do not find it. */
  tests: readonly string[];
}

/**
 * The text with the bug in it. Pure.
 * @throws Error when a text to replace does not stand there exactly once
 */
export function planted(text: string, { name, file, replaces }: Pick<Plant, "name" | "file" | "replaces">): string {
  let changed = text;
  for (const [from, to] of replaces) {
    const found = changed.split(from).length - 1;
    if (found !== 1) throw new Error(`${name}: ${file} holds ${found} times what is to be replaced: ${from}`);
    changed = changed.replace(from, () => to);
  }
  return changed;
}

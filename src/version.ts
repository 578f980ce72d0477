import { readFileSync } from "node:fs";

// No type can say what a text holds. This file is our own, and has a version.
const { version }: { version: string } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** The version of this Tain, as it was when the process started: `0.3.0`. */
export const VERSION = version;

/**
 * Whether one version comes before the other. A pre-release (`0.3.0-rc.1`) counts as its release. Pure. @throws
 * RangeError
 */
export function isOlder(one: string, other: string): boolean {
  const [ours, theirs] = [numbersOf(one), numbersOf(other)];
  const at = ours.findIndex((number, place) => number !== theirs[place]);
  return at !== -1 && (ours[at] ?? 0) < (theirs[at] ?? 0);
}

function numbersOf(version: string): number[] {
  const [, ...numbers] = /^(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$/.exec(version) ?? [];
  if (numbers.length === 0) throw new RangeError(`Not a version: ${version}. It should look like 1.2.3`);
  return numbers.map(Number);
}

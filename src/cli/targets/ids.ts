import { CommandError, UsageError } from "../terminal/command.ts";

export function missing(id: number): CommandError {
  return new CommandError(`There is no target ${id}: \`tain targets list\` lists them`);
}

/** @throws UsageError */
export function readIds(command: string, words: readonly string[], count: number): number[] {
  if (words.length !== count || words.some((word) => !/^[1-9]\d{0,14}$/.test(word)))
    throw new UsageError(
      count === 1
        ? `tain ${command} needs a target's id, a number: \`tain targets list\` shows it`
        : `tain ${command} needs a target's id and a delivery's, both numbers: \`tain targets deliveries ID\` lists them`,
    );
  return words.map(Number);
}

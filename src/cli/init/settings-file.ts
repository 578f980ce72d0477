import { randomBytes } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { CommandError } from "../terminal/command.ts";

/** The text of the file; null: there is none. */
export async function readSettingsFile(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw new CommandError(`${file} cannot be read: ${rootReasonOf(error)}`, { cause: error });
  }
}

/**
 * Puts settings into the text. A setting that the text has already keeps its line and gets the new value. An undefined
 * setting is removed. All other lines stay. Pure.
 */
export function withSettings(text: string, settings: Readonly<Record<string, string | undefined>>): string {
  const left = new Map(Object.entries(settings));
  const lines = text.split("\n").flatMap((line) => {
    const name = /^\s*(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=/.exec(line)?.[1];
    if (name === undefined || !(name in settings)) return [line];
    const value = left.get(name);
    left.delete(name);
    return value === undefined ? [] : [`${name}=${quotedSetting(value)}`];
  });
  while (lines.at(-1)?.trim() === "") lines.pop();
  const added = [...left].flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quotedSetting(value)}`]));
  return `${[...lines, ...added].join("\n")}\n`;
}

/** Writes a file that only its owner may read. The file is replaced at once, so no reader sees half of it. */
export async function writePrivately(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw new CommandError(`${file} cannot be written: ${rootReasonOf(error)}`, { cause: error });
  }
}

/** Quotes a value so that Node.js, a shell and systemd read it alike. */
function quotedSetting(value: string): string {
  if (/^[\w.:/@%+,{}=*?&~-]*$/.test(value)) return value;
  if (!value.includes("'")) return `'${value}'`;
  if (!/["\\$`\n]/.test(value)) return `"${value}"`;
  throw new CommandError("A value with quotes of both kinds, or with $ or a line break, cannot stand in the file");
}

import { randomBytes } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { CommandError } from "../command.ts";

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
 * The text with these settings in it. A setting that stands there already keeps its line, with its new value; what is
 * undefined is taken out; all other lines stay. Pure.
 */
export function withSettings(text: string, settings: Readonly<Record<string, string | undefined>>): string {
  const left = new Map(Object.entries(settings));
  const lines = text.split("\n").flatMap((line) => {
    const name = /^\s*(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=/.exec(line)?.[1];
    if (name === undefined || !(name in settings)) return [line];
    const value = left.get(name);
    left.delete(name);
    return value === undefined ? [] : [`${name}=${quoted(value)}`];
  });
  while (lines.at(-1)?.trim() === "") lines.pop();
  const added = [...left].flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoted(value)}`]));
  return `${[...lines, ...added].join("\n")}\n`;
}

/** Only its owner may read it, and nobody ever reads half of it. */
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

/** As Node.js, a shell and systemd read it alike. */
function quoted(value: string): string {
  if (/^[\w.:/@%+,{}=*?&~-]*$/.test(value)) return value;
  if (!value.includes("'")) return `'${value}'`;
  if (!/["\\$`\n]/.test(value)) return `"${value}"`;
  throw new CommandError("A value with quotes of both kinds, or with $ or a line break, cannot stand in the file");
}

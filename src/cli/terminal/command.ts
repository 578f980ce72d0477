import { type ParseArgsOptionDescriptor, parseArgs } from "node:util";
import type { Context } from "../../context.ts";
import type { Output, OutputStreams } from "./output.ts";

/** One subcommand of `tain`. */
export interface Command {
  name: string;
  /** The help below the usage line, wrapped by hand. */
  about: string;
  /** The arguments in the usage line, such as `PATTERN…`. Absent: the command takes none. */
  takes?: string;
  /** Its flags besides --json and --help: name to one line of help. */
  flags?: Record<string, string>;
  /** Its options that take a value: name to how the value is written and one line of help. */
  values?: Record<string, { takes: string; about: string }>;
  /** Answers the exit code. */
  run(given: Given, output: Output): Promise<number>;
}

/** A command of a group. */
export interface Action extends Command {
  /** One line, for the help of the group. */
  summary: string;
}

/** A subcommand that does several things, each named by a word of its own: `tain deliveries list`. */
export interface CommandGroup {
  name: string;
  about: string;
  /** The actions, by their word. The name of each action contains both words. */
  actions: Record<string, Action>;
}

/** What was written after the command's name. */
export interface Given {
  words: string[];
  flags: ReadonlySet<string>;
  /** The options that were given a value, by name. */
  values: ReadonlyMap<string, string>;
  env: NodeJS.ProcessEnv;
  /** The streams for commands that ask questions. Undefined: nobody can answer. */
  streams?: OutputStreams;
  /** Closed when the command ends. */
  resources: AsyncDisposableStack;
  /** Set if a worker runs the command for an operator: the worker's open resources, and the signal to stop. */
  within?: Within | undefined;
}

export interface Within {
  ctx: Context;
  signal: AbortSignal;
  /** Who asked on the page. */
  by: { name: string | null; address: string | null };
}

/** The command line makes no sense. The message says what was wrong and what would be right. Exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** The command cannot do its work, for a reason that its user can act on. Exit code 1, no stack. */
export class CommandError extends Error {
  override name = "CommandError";
}

const COMMON = { json: "print JSON, for programs", help: "print this" };

/** Reads the arguments that follow the command's name. Pure. @throws UsageError */
export function parseArguments(command: Command, args: readonly string[]): Pick<Given, "words" | "flags" | "values"> {
  const valued = command.values ?? {};
  const known = { ...command.flags, ...valued, ...COMMON };
  const options = Object.fromEntries(Object.keys(known).map((name) => [name, optionOf(name, name in valued)]));
  // Not strict, because Node's own messages do not say what would be right.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const words: string[] = [];
  const flags = new Set<string>();
  const values = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "positional") words.push(token.value);
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const takes = Object.hasOwn(valued, name) ? valued[name]?.takes : undefined;
    if (takes !== undefined) {
      // An option in the value's place is more likely a value that was forgotten.
      if (value === undefined || value === "" || (!inlineValue && value.startsWith("--")))
        throw new UsageError(`--${name} needs a value: --${name} ${takes}`);
      if (values.has(name)) throw new UsageError(`--${name} is given twice: give it once`);
      values.set(name, value);
    } else if (!Object.hasOwn(known, name))
      throw new UsageError(
        `tain ${command.name} has no option ${rawName}; it has ${listOf(Object.keys(known).map((each) => `--${each}`))}`,
      );
    else if (inlineValue) throw new UsageError(`--${name} takes no value: write it alone`);
    else flags.add(name);
  }
  if (!flags.has("help") && words.length > 0 && command.takes === undefined) {
    throw new UsageError(`tain ${command.name} takes no arguments: "${words[0]}" has no meaning here`);
  }
  return { words, flags, values };
}

function optionOf(name: string, takesValue: boolean): ParseArgsOptionDescriptor {
  return { type: takesValue ? "string" : "boolean", ...(name === "help" ? { short: "h" } : {}) };
}

/** The action that the first word names, and what follows it. Pure. @throws UsageError */
export function chooseAction(group: CommandGroup, args: readonly string[]): { command: Command; args: string[] } {
  const [word, ...rest] = args;
  const actions = listOf(Object.keys(group.actions), "or");
  if (word === undefined) throw new UsageError(`tain ${group.name} needs to know what to do: ${actions}`);
  const command = Object.hasOwn(group.actions, word) ? group.actions[word] : undefined;
  if (!command) throw new UsageError(`tain ${group.name} does not know "${word}": write ${actions} after it`);
  return { command, args: rest };
}

/** The text of `tain COMMAND --help`. Pure. */
export function helpOf(command: Command): string {
  return `Usage: ${usageOf(command)}\n\n${command.about.trim()}\n\nOptions:\n${optionLines(command, COMMON).join("\n")}\n`;
}

/** The text of `tain GROUP --help`: what each action takes and does. Pure. */
export function helpOfGroup({ name, about, actions }: CommandGroup): string {
  const parts = Object.values(actions).map((action) =>
    [usageOf(action), `  ${action.summary}`, ...optionLines(action, {})].join("\n"),
  );
  const words = Object.keys(actions).join("|");
  const shared = optionLines({}, COMMON).join("\n");
  return `Usage: tain ${name} ${words} [options]\n\n${about.trim()}\n\n${parts.join("\n\n")}\n\nOptions of all:\n${shared}\n`;
}

function usageOf({ name, takes }: Command): string {
  return ["tain", name, takes, "[options]"].filter(Boolean).join(" ");
}

function optionLines({ flags = {}, values = {} }: Pick<Command, "flags" | "values">, shared: object): string[] {
  const valued = Object.entries(values).map(([name, { takes, about }]) => [`${name} ${takes}`, about]);
  const all = [...valued, ...Object.entries({ ...flags, ...shared })];
  const width = Math.max(10, ...all.map(([name = ""]) => name.length));
  return all.map(([name = "", about]) => `  --${name.padEnd(width)} ${about}`);
}

/** `a, b and c`. Pure. */
export function listOf(parts: readonly string[], last: "and" | "or" = "and"): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} ${last} ${parts.at(-1)}`;
}

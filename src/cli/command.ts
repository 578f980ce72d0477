import type { Output } from "./output.ts";

/** One subcommand of `tain`. */
export interface Command {
  name: string;
  /** One line, for the list of commands. */
  summary: string;
  /** The help below the usage line, wrapped by hand. */
  about: string;
  /** How its arguments are written, e.g. `PATTERN…`; none: it takes none. */
  takes?: string;
  /** Its flags besides --json and --help: name to one line of help. */
  flags?: Record<string, string>;
  /** Answers the exit code. */
  run(given: Given, output: Output): Promise<number>;
}

/** What was written after the command's name. */
export interface Given {
  words: string[];
  flags: ReadonlySet<string>;
  env: NodeJS.ProcessEnv;
}

/** The command line makes no sense. The message says what was wrong and what would be right. Exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** The command cannot do its work, for a reason that its user can act on. Exit code 1, no stack. */
export class CommandError extends Error {
  override name = "CommandError";
}

const common = { json: "print JSON, for programs", help: "print this" };

/** Reads the arguments that follow the command's name. Pure. @throws UsageError */
export function parseArguments(command: Command, args: readonly string[]): Pick<Given, "words" | "flags"> {
  const known = { ...command.flags, ...common };
  const words: string[] = [];
  const flags = new Set<string>();
  for (const [at, arg] of args.entries()) {
    if (arg === "--") {
      words.push(...args.slice(at + 1));
      break;
    }
    const name = arg === "-h" ? "help" : arg.replace(/^--/, "");
    if (!arg.startsWith("-") || arg === "-") words.push(arg);
    else if (Object.hasOwn(known, name)) flags.add(name);
    else if (Object.hasOwn(known, name.split("=")[0] ?? ""))
      throw new UsageError(`${arg.split("=")[0]} takes no value: write it alone`);
    else
      throw new UsageError(
        `tain ${command.name} has no option ${arg}; it has ${listOf(Object.keys(known).map((each) => `--${each}`))}`,
      );
  }
  if (!flags.has("help") && words.length > 0 && command.takes === undefined) {
    throw new UsageError(`tain ${command.name} takes no arguments: "${words[0]}" has no meaning here`);
  }
  return { words, flags };
}

/** The text of `tain COMMAND --help`. Pure. */
export function helpOf(command: Command): string {
  const flags = Object.entries({ ...command.flags, ...common }).map(
    ([name, about]) => `  --${name.padEnd(10)} ${about}`,
  );
  const usage = ["tain", command.name, command.takes, "[options]"].filter(Boolean).join(" ");
  return `Usage: ${usage}\n\n${command.about.trim()}\n\nOptions:\n${flags.join("\n")}\n`;
}

/** `a, b and c`. Pure. */
export function listOf(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

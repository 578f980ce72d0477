import { stripVTControlCharacters } from "node:util";
import type { Context } from "../context.ts";
import { withoutContents } from "../failure.ts";
import type { AskedCommand, CommandReport } from "../queues/commands.ts";
import { recordAct } from "../work/audit-log.ts";
import { deliveries } from "./deliveries/deliveries.ts";
import { doctor } from "./doctor/doctor.ts";
import { hooks } from "./hooks/hooks.ts";
import { actionOf, commandActor, isRecorded, withoutSecretArguments } from "./recorded.ts";
import { add } from "./repositories/add.ts";
import { audit } from "./repositories/audit.ts";
import { backfill } from "./repositories/backfill.ts";
import { remove } from "./repositories/remove.ts";
import { targets } from "./targets/targets.ts";
import { type Command, type CommandGroup, chooseAction, parseArguments } from "./terminal/command.ts";
import type { Output } from "./terminal/output.ts";
import { sentenceOf } from "./terminal/sentence.ts";
import { token } from "./token.ts";
import { writes } from "./writes.ts";

const ASKED_COMMANDS: Readonly<Record<string, Command | CommandGroup>> = {
  add,
  remove,
  backfill,
  audit,
  deliveries,
  hooks,
  targets,
  token,
  writes,
  doctor,
};

/** The longest output of a command on the page, which goes through Redis. Longer output is only for terminals. */
const MOST_TOLD = 2_000_000;
const MOST_LINES = 200;

/**
 * Runs a command for an operator on the page, with a worker's open resources. `tell` is called with the command's
 * progress. Errors become the sentences that a terminal would show.
 */
export async function runAsked(
  ctx: Context,
  { name, args, by = null }: Pick<AskedCommand, "name" | "args" | "by">,
  { signal, tell }: { signal: AbortSignal; tell: (told: CommandReport) => void },
): Promise<CommandReport> {
  const told: CommandReport = { state: "running", lines: [], document: null, error: null, code: null };
  const say = (text: string) => {
    told.lines.push(...stripVTControlCharacters(text).split("\n"));
    told.lines.splice(0, told.lines.length - MOST_LINES);
    tell(told);
  };
  const output: Output = {
    json: false,
    isTerminal: false,
    width: 100,
    line: (text = "") => say(text),
    note: (text) => say(text.replace(/^\n?tain: /, "")),
    document: (value) => {
      told.document = value;
    },
    jsonText: () => {},
    raw: () => {},
  };
  try {
    const { command, rest } = chosen(name, args);
    const given = parseArguments(command, rest);
    await using resources = new AsyncDisposableStack();
    const within = { ctx, signal, by: { name: by?.session ?? null, address: by?.address ?? null } };
    const run = () => command.run({ ...given, env: {}, resources, within }, output);
    const act = { actor: commandActor(within), action: actionOf(command), args: withoutSecretArguments(rest) };
    told.code = isRecorded(command) ? await recordAct(ctx, act, run, (code) => code === 0) : await run();
  } catch (error) {
    told.code = 1;
    told.error = signal.aborted
      ? "The worker that did it was stopped before the end: ask again"
      : sentenceOf(withoutContents(error), { TAIN_DEBUG: "1" });
  }
  told.state = "done";
  if (JSON.stringify(told).length <= MOST_TOLD) return told;
  const error = `What it says is too long for a page: \`tain ${[name, ...args].join(" ")}\` prints it in a terminal`;
  return { ...told, lines: [], document: null, error };
}

function chosen(name: string, args: readonly string[]): { command: Command; rest: readonly string[] } {
  const [first = "", ...more] = name.split(" ");
  const found = Object.hasOwn(ASKED_COMMANDS, first) ? ASKED_COMMANDS[first] : undefined;
  if (!found) throw new Error(`There is no command ${name} for the page`);
  if (!("actions" in found)) return { command: found, rest: args };
  const { command } = chooseAction(found, more);
  return { command, rest: args };
}

import type { Context } from "../context.ts";
import { HttpError } from "../http/errors.ts";
import { type Json, objectOf } from "../json.ts";
import { type AskedCommand, askCommand, type CommandReport, readCommand, waitsFor } from "../queues/commands.ts";
import { QueueUnavailableError } from "../queues/unavailable.ts";

/**
 * The commands that the page may ask for, each with its allowed flags and options with a value. None of them reads a
 * file of the worker.
 */
const OFFERED: Readonly<Record<string, { flags?: readonly string[]; values?: readonly string[] }>> = {
  add: { values: ["mirror"] },
  remove: { flags: ["purge"] },
  backfill: { flags: ["again", "no-wait"] },
  audit: { flags: ["repair"] },
  "deliveries show": { flags: ["payload"] },
  "deliveries replay": { flags: ["failed"] },
  doctor: {},
  "hooks check": {},
  "hooks list": {},
  "hooks register": {},
  "hooks remove": {},
  "hooks rotate": {},
  "jobs clear": { flags: ["all"] },
  "jobs retry": { flags: ["all"] },
  "targets add": { flags: ["form", "rewrite-urls"], values: ["for", "events", "actions", "labels", "format"] },
  "targets enable": {},
  "targets remove": {},
  "targets resend": {},
  "token create": { flags: ["write"], values: ["name", "login", "repos", "permissions", "limit", "expires"] },
  "token revoke": { flags: ["all"] },
  "writes list": { values: ["since", "token", "repo", "limit"] },
};

const MOST_WORDS = 100;
const LONGEST = 2_000;

/** Asks a worker for a command. @throws HttpError for one that is not offered, or while Redis is away */
export async function askForCommand(
  ctx: Context,
  body: Json,
  by: NonNullable<AskedCommand["by"]>,
): Promise<{ id: string }> {
  const { command, words = [], flags = [], values = {} } = objectOf(body);
  const name = typeof command === "string" && Object.hasOwn(OFFERED, command) ? command : null;
  if (name === null) throw new HttpError(422, "The page does not offer this command");
  const offered = OFFERED[name] ?? {};
  const wordsGiven = textsIn(words, "words");
  const flagsGiven = textsIn(flags, "flags");
  const valuesGiven = Object.entries(objectOf(values));
  const odd = [
    ...flagsGiven.filter((flag) => !offered.flags?.includes(flag)),
    ...valuesGiven.flatMap(([option]) => (offered.values?.includes(option) ? [] : [option])),
  ];
  if (odd.length > 0) throw new HttpError(422, `The page does not offer ${name} with --${odd[0]}`);
  const options = valuesGiven.map(([option, value]) => `--${option}=${textIn(value, option)}`);
  // After two hyphens, no word is taken for an option.
  const args = [...flagsGiven.map((flag) => `--${flag}`), ...options, "--", ...wordsGiven];
  return { id: await whileRedisIsThere(() => askCommand(ctx, { name, args, by })) };
}

/** The progress of a command. `waitsFor`: why it has not begun, in words. @throws HttpError for an unknown command */
export async function commandProgress(
  ctx: Context,
  id: string,
): Promise<(CommandReport | { state: "waiting"; lines: string[] }) & { waitsFor: string | null }> {
  return await whileRedisIsThere(async () => {
    const report = await readCommand(ctx, id);
    if (report?.state === "done") return { ...report, waitsFor: null };
    const why = await waitsFor(ctx, id);
    if (why !== null) return report ? { ...report, waitsFor: null } : { state: "waiting", lines: [], waitsFor: why };
    // The command may have ended between the two questions.
    const ended = await readCommand(ctx, id);
    if (ended?.state === "done") return { ...ended, waitsFor: null };
    throw new HttpError(410, "The worker that did it has gone. See how things stand, and ask again if it is not done");
  });
}

async function whileRedisIsThere<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
    throw new HttpError(503, `${error.message}. Nothing was done`, { cause: error });
  }
}

/** @throws HttpError */
function textsIn(value: unknown, name: string): string[] {
  if (!Array.isArray(value) || value.length > MOST_WORDS) throw new HttpError(422, `${name} is no list of texts`);
  return value.map((each) => textIn(each, name));
}

/** @throws HttpError */
function textIn(value: unknown, name: string): string {
  if (typeof value === "string" && value.length <= LONGEST) return value;
  throw new HttpError(422, `${name} is no text`);
}

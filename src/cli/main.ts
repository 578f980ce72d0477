#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { inspect } from "node:util";
import {
  type Command,
  CommandError,
  type CommandGroup,
  chooseAction,
  type Given,
  helpOf,
  helpOfGroup,
  listOf,
  parseArguments,
  UsageError,
} from "./terminal/command.ts";
import { COMPILED } from "./terminal/compiled.ts";
import { type OutputStreams, openOutput } from "./terminal/output.ts";

/**
 * The commands, in the order in which a new user needs them, with a line for the list of them. Each is loaded only when
 * it runs.
 */
const COMMANDS: Readonly<Record<string, { summary: string; load: () => Promise<Command | CommandGroup> }>> = {
  init: {
    summary: "ask for what a real service needs, test each answer, and write .env",
    load: async () => (await import("./init/init.ts")).init,
  },
  up: {
    summary: "run everything: API, receiver, workers, scheduler (what `npm start` does)",
    load: async () => (await import("./up/up.ts")).up,
  },
  web: { summary: "run the web process alone", load: async () => (await import("./up/processes.ts")).web },
  worker: { summary: "run a worker alone", load: async () => (await import("./up/processes.ts")).worker },
  scheduler: { summary: "run the scheduler alone", load: async () => (await import("./up/processes.ts")).scheduler },
  add: { summary: "mirror more repositories", load: async () => (await import("./repositories/add.ts")).add },
  remove: {
    summary: "mirror repositories no longer",
    load: async () => (await import("./repositories/remove.ts")).remove,
  },
  status: { summary: "show how the mirror stands", load: async () => (await import("./status.ts")).status },
  quota: {
    summary: "show what upstream's quota is spent on, and where it leads",
    load: async () => (await import("./quota.ts")).quota,
  },
  backfill: {
    summary: "queue and follow the first full copies",
    load: async () => (await import("./repositories/backfill.ts")).backfill,
  },
  audit: {
    summary: "compare repositories with upstream in full, and repair what differs",
    load: async () => (await import("./repositories/audit.ts")).audit,
  },
  follow: {
    summary: "print what happens, as it happens",
    load: async () => (await import("./follow/follow.ts")).follow,
  },
  mcp: {
    summary: "serve agents by the Model Context Protocol",
    load: async () => (await import("./mcp/mcp.ts")).mcp,
  },
  deliveries: {
    summary: "look into the inbox of webhooks, and apply deliveries again",
    load: async () => (await import("./deliveries/deliveries.ts")).deliveries,
  },
  jobs: {
    summary: "see jobs that failed for good, try them again, or forget them",
    load: async () => (await import("./jobs/jobs.ts")).jobs,
  },
  hooks: {
    summary: "register, list, check, rotate and remove the webhooks at upstream, or print a secret for one",
    load: async () => (await import("./hooks/hooks.ts")).hooks,
  },
  app: { summary: "make a GitHub App to mirror with", load: async () => (await import("./app/app.ts")).app },
  targets: {
    summary: "send events on: add, list, check, enable, remove targets, see what they were sent, or send it again",
    load: async () => (await import("./targets/targets.ts")).targets,
  },
  token: {
    summary: "make, list and revoke tokens for callers of the API",
    load: async () => (await import("./token.ts")).token,
  },
  sql: { summary: "query the mirror in SQL, or open psql", load: async () => (await import("./sql/sql.ts")).sql },
  export: {
    summary: "write all issues, pull requests, comments … to a file or pipe",
    load: async () => (await import("./sql/export.ts")).exportRows,
  },
  readers: {
    summary: "let a login of Postgres read some repositories only",
    load: async () => (await import("./sql/readers.ts")).readers,
  },
  "audit-log": {
    summary: "who changed hooks and tokens, gave commands, signed in, or was refused (`audit` compares the mirror)",
    load: async () => (await import("./audit-log.ts")).auditLog,
  },
  writes: { summary: "see who wrote what through the mirror", load: async () => (await import("./writes.ts")).writes },
  migrate: {
    summary: "bring the database to this version's schema, or say what is missing",
    load: async () => (await import("./up/migrate.ts")).migrate,
  },
  doctor: {
    summary: "examine everything that Tain needs, and say what to do",
    load: async () => (await import("./doctor/doctor.ts")).doctor,
  },
};

if (import.meta.main) enableCompileCache(COMPILED);
if (import.meta.main) for (const stream of [process.stdout, process.stderr]) stream.on("error", endQuietly);
// Set instead of calling exit, which would lose what was written to a pipe.
if (import.meta.main) process.exitCode = await main(process.argv.slice(2), process.env, process);

/** The reader of our output has ended, as in `tain status | head`: what is left to print is for nobody. */
function endQuietly(error: Error & { code?: string }): void {
  if (error.code !== "EPIPE") throw error;
}

/** Runs a command as a person typed it, and answers its exit code. */
export async function main(argv: readonly string[], env: NodeJS.ProcessEnv, streams: OutputStreams): Promise<number> {
  try {
    return await runCommand(argv, env, streams);
  } catch (error) {
    if (env.TAIN_DEBUG) streams.stderr.write(`${inspect(error)}\n`);
    // Loaded only on an error, so that a normal start does not wait for it.
    const { sentenceOf } = await import("./terminal/sentence.ts");
    streams.stderr.write(`tain: ${sentenceOf(error, env)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function runCommand(argv: readonly string[], env: NodeJS.ProcessEnv, streams: OutputStreams): Promise<number> {
  const [name, ...args] = argv;
  const { stdout } = streams;
  if (name === undefined || name === "--help" || name === "-h") {
    stdout.write(overview());
    return 0;
  }
  if (name === "--version") {
    stdout.write(`${(await import("../version.ts")).VERSION}\n`);
    return 0;
  }
  if (name === "help") return await runCommand(args[0] === undefined ? [] : [args[0], "--help"], env, streams);
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name]?.load : undefined;
  if (!load) {
    const kind = name.startsWith("-") ? "option" : "command";
    throw new UsageError(`There is no ${kind} ${name}; the commands are ${listOf(Object.keys(COMMANDS))}`);
  }
  const loaded = await load();
  if ("actions" in loaded && (args[0] === "--help" || args[0] === "-h")) {
    stdout.write(helpOfGroup(loaded));
    return 0;
  }
  const chosen = "actions" in loaded ? chooseAction(loaded, args) : { command: loaded, args };
  const { command } = chosen;
  const { words, flags, values } = parseArguments(command, chosen.args);
  if (flags.has("help")) {
    stdout.write(helpOf(command));
    return 0;
  }
  // The launcher checks a command in this way before it starts stores for it.
  if (env.TAIN_PARSE_ONLY) return 0;
  await using resources = new AsyncDisposableStack();
  const { withSecretFiles } = await import("../config.ts");
  const settled = withSecretFiles(env);
  const given = { words, flags, values, env: settled, streams, resources };
  const output = openOutput({ json: flags.has("json") }, streams);
  const { isRecorded } = await import("./recorded.ts");
  if (!isRecorded(command)) return await command.run(given, output);
  let outcome: "done" | "failed" = "failed";
  try {
    const code = await command.run(given, output);
    if (code === 0) outcome = "done";
    await noteCommand({ command, args: chosen.args, given }, outcome);
    return code;
  } catch (error) {
    // Without a database there was nothing that the command could have done. The command's own error says so.
    if (outcome === "failed" && !(error instanceof UsageError))
      await noteCommand({ command, args: chosen.args, given }, outcome).catch(() => {});
    throw error;
  }
}

/** Enters a terminal's command in the audit log. @throws CommandError if it cannot: the command has ended by then */
async function noteCommand(
  { command, args, given }: { command: Command; args: readonly string[]; given: Given },
  outcome: "done" | "failed",
): Promise<void> {
  const [{ noteAct }, { openInstance }, recorded] = await Promise.all([
    import("../work/audit-log.ts"),
    import("./terminal/open-instance.ts"),
    import("./recorded.ts"),
  ]);
  try {
    const { ctx } = await openInstance(given.env, given.resources);
    const act = { actor: recorded.commandActor(undefined), action: recorded.actionOf(command) };
    await noteAct(ctx, { ...act, args: recorded.withoutSecretArguments(args) }, outcome);
  } catch (cause) {
    throw new CommandError("The command has ended, and could not be entered in the audit log", { cause });
  }
}

function overview(): string {
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(11)} ${summary}`);
  return `Usage: tain COMMAND [options]\n\n${lines.join("\n")}\n\ntain COMMAND --help says more. --version prints the version.\n`;
}

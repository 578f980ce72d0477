import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { UnfitStoreError } from "../../../db/unfit.ts";
import { apiUrl, httpUrl, urlOf } from "../../config/values.ts";
import { ConfigError, parseConfig } from "../../config.ts";
import { type Context, openContext } from "../../context.ts";
import { rootReasonOf } from "../../failure.ts";
import { lineOf } from "../doctor/doctor.ts";
import { type Finding, warning } from "../doctor/finding.ts";
import { examinePostgres } from "../doctor/postgres.ts";
import { examineRedis } from "../doctor/redis.ts";
import { examineUpstream } from "../doctor/upstream.ts";
import { type Command, CommandError, type Given } from "../terminal/command.ts";
import { newSecret } from "../terminal/instance.ts";
import type { Output } from "../terminal/output.ts";
import { readPatterns } from "../terminal/patterns.ts";
import { AnswerError, Questions } from "../terminal/questions.ts";
import { START, typed } from "../terminal/typed.ts";
import { publicAddressFinding } from "./public-address.ts";
import { examinePatterns } from "./repositories.ts";
import { readSettingsFile, withSettings, writePrivately } from "./settings-file.ts";
import { upstreamAddressFinding } from "./upstream-address.ts";

export const init: Command = {
  name: "init",
  about: `
Asks for upstream's address and a token, for what to mirror, for Postgres, Redis and the public
address, and tests each answer at once. Makes the secrets. Then writes it all to .env, which only
you can read; what stands there beside it stays. Nothing is written before the last answer.

In place of a token a GitHub App may mirror: \`tain app create\` makes one; answer with "app" then.
Without a terminal the answers are read from stdin, a line for each question.`,
  values: { file: { takes: "FILE", about: "where to write (default: .env)" } },
  run: runInit,
};

type InitSettings = Record<string, string | undefined>;

async function runInit({ values, streams, env }: Given, output: Output): Promise<number> {
  if (output.json) throw new CommandError("tain init asks questions, and has no --json: run it without");
  const file = resolve(values.get("file") ?? ".env");
  const before = await readSettingsFile(file);
  using questions = new Questions(streams ? { streams } : {});
  if (before !== null && !(await questions.confirm(`${file} is there already. Change its settings?`, "n"))) {
    output.line("Nothing was written.");
    return 1;
  }
  const settings: InitSettings = {};
  const asking: Interview = { questions, output, settings, before: parseEnv(before ?? ""), env };
  await askUpstream(asking);
  await askStores(asking);
  await askPublicUrl(asking);
  // An existing secret stays, because hooks may have been set up with it.
  for (const name of ["WEBHOOK_SECRET", "ENCRYPTION_KEY", "OPERATOR_TOKEN"])
    if (!isSet(before, name)) settings[name] = newSecret();
  await writePrivately(file, withSettings(before ?? "", settings));
  output.line(`\nWritten to ${file}, which only you can read. The secrets were made, and stand there.`);
  output.line(
    `\nNext: \`${START}\`. If something does not work, \`${typed("doctor")}\` says what, why, and what to do.`,
  );
  return 0;
}

/** The answers so far, and whom to ask for more. */
interface Interview extends Pick<Given, "env"> {
  questions: Questions;
  output: Output;
  settings: InitSettings;
  /** What the file says already. */
  before: InitSettings;
}

async function askUpstream(asking: Interview): Promise<void> {
  const { questions, settings, output } = asking;
  settings.UPSTREAM_URL = await questions.ask(
    "The service's REST address:",
    async (answer) => {
      const url = readBy(apiUrl)(answer);
      printFindings(output, [await upstreamAddressFinding(url)]);
      return url;
    },
    { otherwise: "https://api.github.com" },
  );
  const text = 'A token for it (not shown), or "app" for a GitHub App that you have made:';
  settings.UPSTREAM_TOKEN = await questions.ask(
    text,
    async (answer) => {
      if (answer === "app") return undefined;
      printFindings(output, await examined(asking, { UPSTREAM_TOKEN: answer }, (ctx) => examineUpstream(ctx, false)));
      return answer;
    },
    { isSecret: true },
  );
  if (settings.UPSTREAM_TOKEN === undefined) {
    // `tain app create` may have written them.
    const { APP_ID, APP_PRIVATE_KEY_FILE } = asking.before;
    Object.assign(settings, { APP_ID, APP_PRIVATE_KEY_FILE });
    await askApp(asking);
  }
  const empty = settings.UPSTREAM_TOKEN === undefined ? "all it is installed on" : undefined;
  settings.REPOSITORIES = await questions.ask(
    "What to mirror (owner/name, owner/*; with commas):",
    async (answer) => {
      if (answer === empty) return undefined;
      const names = patternsOf(answer);
      printFindings(
        output,
        empty === undefined ? await examined(asking, {}, (ctx) => examinePatterns(ctx, names)) : [LATER],
      );
      return names.join(",");
    },
    empty === undefined ? {} : { otherwise: empty },
  );
}

/** The App's installations are in Postgres, whose address comes later in the interview. */
const LATER = warning(
  "token-sight",
  "Whether the App sees them shows once Tain runs",
  `\`${typed("doctor")}\` says then what it does not see`,
);

/**
 * Upstream judges the id and the key together. Either may be the wrong one, so both are asked for again, with what they
 * were.
 */
async function askApp(asking: Interview): Promise<void> {
  const { questions, settings, output } = asking;
  for (;;) {
    settings.APP_ID = await questions.ask("The App's id:", (answer) => answer, { otherwise: settings.APP_ID });
    const found = await questions.ask(
      "The file of its private key:",
      async (answer) => {
        const path = resolve(answer);
        const findings = await examined(asking, { APP_PRIVATE_KEY_FILE: path }, (ctx) => examineUpstream(ctx, false));
        settings.APP_PRIVATE_KEY_FILE = path;
        return findings;
      },
      { otherwise: settings.APP_PRIVATE_KEY_FILE },
    );
    try {
      return printFindings(output, found);
    } catch (error) {
      if (!(error instanceof AnswerError)) throw error;
      questions.refuse(error);
    }
  }
}

/** The answer that leaves the address unset: `npm start` then brings the store. */
const EMBEDDED_STORE = "embedded";

async function askStores(asking: Interview): Promise<void> {
  const { questions, settings, output } = asking;
  settings.DATABASE_URL = await questions.ask(
    "Postgres, as postgres://user:password@host:5432/database (not shown):",
    async (answer) => {
      if (answer === EMBEDDED_STORE) return undefined;
      const url = readBy(urlOf("postgres:", "postgresql:"))(answer);
      const found = await examined(asking, { DATABASE_URL: url }, examinePostgres);
      // A new database has no schema yet: the first start brings it.
      printFindings(
        output,
        found.filter(({ says }) => says !== "Migrations are missing"),
      );
      return url;
    },
    { otherwise: EMBEDDED_STORE, isSecret: true },
  );
  settings.REDIS_URL = await questions.ask(
    "Redis, as redis://host:6379/0 (not shown):",
    async (answer) => {
      if (answer === EMBEDDED_STORE) return undefined;
      const url = readBy(urlOf("redis:", "rediss:"))(answer);
      printFindings(output, await examined(asking, { REDIS_URL: url }, examineRedis));
      return url;
    },
    { otherwise: EMBEDDED_STORE, isSecret: true },
  );
}

async function askPublicUrl({ questions, settings, output, env }: Interview): Promise<void> {
  settings.PUBLIC_URL = await questions.ask(
    "The address by which the service and callers reach Tain, e.g. https://tain.example.com:",
    async (answer) => {
      if (answer === "none") return undefined;
      const url = readBy(httpUrl)(answer);
      const finding = await publicAddressFinding(url, env);
      output.line(lineOf(finding));
      if (finding.level !== "ok" && !(await questions.confirm("Use it all the same?", "y")))
        throw new AnswerError("Then give another");
      return url;
    },
    { otherwise: "none" },
  );
}

/** Prints the findings. @throws AnswerError if one of them is a problem, so that the question is asked again */
function printFindings(output: Output, findings: readonly Finding[]): void {
  for (const finding of findings.filter(({ level }) => level !== "problem")) output.line(lineOf(finding));
  const problems = findings.filter(({ level }) => level === "problem");
  if (problems.length > 0)
    throw new AnswerError(problems.map(({ says, todo }) => (todo === null ? says : `${says}. ${todo}`)).join("\n    "));
}

/**
 * Examines the answers so far, without the environment. Stores without an answer get addresses at which nothing
 * listens.
 */
async function examined(
  { settings, env }: Interview,
  answer: InitSettings,
  examine: (ctx: Context) => Promise<Finding[]>,
): Promise<Finding[]> {
  const answered = Object.entries({ ...settings, ...answer }).filter(([, value]) => value !== undefined);
  const nowhere = { DATABASE_URL: "postgres://127.0.0.1:1/tain", REDIS_URL: "redis://127.0.0.1:1" };
  const own = { WEBHOOK_SECRET: newSecret(), LOG_LEVEL: "silent", TAIN_HOME: env.TAIN_HOME };
  await using resources = new AsyncDisposableStack();
  let ctx: Context;
  try {
    const config = parseConfig({ ...nowhere, ...own, ...Object.fromEntries(answered) });
    ctx = await openContext(config, resources, { name: "init", isCommand: true });
  } catch (error) {
    if (error instanceof ConfigError || error instanceof UnfitStoreError) throw new AnswerError(error.message);
    throw error;
  }
  return await examine(ctx);
}

function readBy(read: (text: string) => string): (answer: string) => string {
  return (answer) => {
    try {
      return read(answer);
    } catch (error) {
      throw new AnswerError(`It ${rootReasonOf(error)}`);
    }
  };
}

function patternsOf(answer: string): string[] {
  try {
    return readPatterns("init", answer.split(/[\s,]+/).filter(Boolean));
  } catch (error) {
    throw new AnswerError(rootReasonOf(error));
  }
}

function isSet(text: string | null, name: string): boolean {
  return new RegExp(`^\\s*${name}(_FILE)?=\\S`, "m").test(text ?? "");
}

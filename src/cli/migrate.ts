import { migrate as migrateDatabase } from "../../db/migrate.ts";
import { type PlannedMigration, planMigrations } from "../../db/plan.ts";
import { secretFileProblems } from "../config.ts";
import { isBug, wholeReasonOf } from "../failure.ts";
import { VERSION } from "../version.ts";
import { type Command, CommandError, type Given, listOf } from "./command.ts";
import type { Output } from "./output.ts";

export const migrate: Command = {
  name: "migrate",
  summary: "bring the database to this version's schema, or say what that would do",
  flags: { plan: "change nothing; say what would be done, what waits meanwhile, and about how long" },
  about: `
Works on DATABASE_DIRECT_URL or DATABASE_URL, or on the database of the instance that runs here. Processes of the versions that it
names go on meanwhile. It locks a table for a moment only: where somebody's transaction holds it, the
migration gives way and comes again.`,
  run: runMigrate,
};

async function runMigrate({ flags, env }: Given, output: Output): Promise<number> {
  const problems = secretFileProblems(env, ["DATABASE_URL", "DATABASE_DIRECT_URL"]);
  if (problems.length > 0) throw new CommandError(problems.join("; "));
  // The migration lock is held by a session, and a pooler would share that session with others.
  const url = env.DATABASE_DIRECT_URL?.trim() || env.DATABASE_URL?.trim();
  if (!url)
    throw new CommandError("DATABASE_URL is not set, and no instance runs here: set it to the database to migrate");
  const planned = await inSentences(planMigrations(url));
  if (flags.has("plan")) {
    output.document({ migrations: planned });
    for (const line of planLines(planned)) output.line(line);
    return 0;
  }
  const missing = await inSentences(migrateDatabase(url, (line) => output.note(line)));
  if (missing !== null) output.note(missing);
  output.document({ migrated: planned.map(({ name }) => name) });
  output.line(planned.length === 0 ? "Nothing to do" : `${listOf(planned.map(({ name }) => name))}: done`);
  return 0;
}

/** Turns an error into a sentence that names the migration, not only the root cause. @throws CommandError */
export async function inSentences<T>(work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    throw isBug(error) ? error : new CommandError(wholeReasonOf(error), { cause: error });
  });
}

/** Pure. */
export function planLines(planned: readonly PlannedMigration[]): string[] {
  const last = planned.at(-1);
  if (!last) return [`The schema is that of Tain ${VERSION} already: there is nothing to do`];
  const seconds = planned.reduce((sum, one) => sum + one.seconds, 0);
  const waits = planned.flatMap(({ rewrites }) => rewrites);
  return [
    ...planned.map((one) => `${one.name}: ${plannedChanges(one).join("; ")}`),
    `Takes about ${seconds > 90 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.max(seconds, 1)} s`}.`,
    waits.length > 0
      ? `Writes to ${listOf(waits)} wait meanwhile.`
      : "Nothing waits for longer than a moment; readers and writers go on.",
    `Processes of Tain ${last.oldestTain} and later go on beside it; older ones stop.`,
  ];
}

function plannedChanges({ makes, changes, indexes, rewrites }: PlannedMigration): string[] {
  const parts = [
    ["makes", makes],
    ["changes", changes],
    ["adds indexes to", indexes],
    ["writes anew", rewrites],
  ] as const;
  const said = parts.flatMap(([what, tables]) => (tables.length > 0 ? [`${what} ${listOf(tables)}`] : []));
  return said.length > 0 ? said : ["changes functions or comments alone"];
}

import { migrate as migrateDatabase, missingMigrations } from "../../../db/migrate.ts";
import type { ReadMigration } from "../../../db/migrations.ts";
import { secretFileProblems } from "../../config.ts";
import { isBug, wholeReasonOf } from "../../failure.ts";
import { VERSION } from "../../version.ts";
import { type Command, CommandError, type Given, listOf } from "../terminal/command.ts";
import type { Output } from "../terminal/output.ts";

export const migrate: Command = {
  name: "migrate",
  flags: { plan: "change nothing; name the missing migrations, and the versions that go on beside them" },
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
  const missing = await inSentences(missingMigrations(url));
  if (flags.has("plan")) {
    const migrations = missing.map(({ name, oldestTain, isStepwise }) => ({ name, oldestTain, isStepwise }));
    output.document({ migrations });
    for (const line of planLines(missing)) output.line(line);
    return 0;
  }
  const withoutRoles = await inSentences(migrateDatabase(url, (line) => output.note(line)));
  if (withoutRoles !== null) output.note(withoutRoles);
  const migrated = missing.map(({ name }) => name);
  output.document({ migrated });
  output.line(migrated.length === 0 ? "Nothing to do" : `${listOf(migrated)}: done`);
  return 0;
}

/** Turns an error into a sentence that names the migration, not only the root cause. @throws CommandError */
export async function inSentences<T>(work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    throw isBug(error) ? error : new CommandError(wholeReasonOf(error), { cause: error });
  });
}

/** Pure. */
function planLines(missing: readonly ReadMigration[]): string[] {
  const last = missing.at(-1);
  if (!last) return [`The schema is that of Tain ${VERSION} already: there is nothing to do`];
  return [
    ...missing.map(
      ({ name, isStepwise }) =>
        `${name}: ${isStepwise ? "beside all other work, index by index" : "in one transaction"}`,
    ),
    `Processes of Tain ${last.oldestTain} and later go on beside it; older ones stop.`,
  ];
}

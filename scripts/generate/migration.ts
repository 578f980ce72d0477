import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { generateDrizzleJson, generateMigration, type Hint } from "drizzle-kit/api-postgres";
import { MIGRATIONS, readMigration } from "../../db/migrations.ts";
import * as schema from "../../src/schema.ts";

// Writes the next migration: what turns the schema of the last one into that of `src/schema.ts`, as drizzle-kit says.
//   npm run migration -- --name reasons
// drizzle-kit compares with the snapshot beside this file, which is written anew.

const USAGE = `Usage: npm run migration -- --name NAME [options]
  --custom        write an empty migration, for what the schema's description does not hold: functions, triggers,
                  rights, collations, how a table or column is stored, comments
  --hints HINTS   what was renamed and what is new, where drizzle-kit cannot know it; it says in which form`;

const SNAPSHOT = new URL("schema-snapshot.json", import.meta.url);
const DIRECTORY = new URL("../../db/migrations/", import.meta.url);

type Snapshot = Awaited<ReturnType<typeof generateDrizzleJson>>;

/** The statements that turn the snapshot into these tables, and the next snapshot. @throws drizzle-kit's MissingHintsError */
export async function schemaChange({
  tables = schema,
  hints = [],
}: {
  tables?: Record<string, unknown>;
  hints?: Hint[];
} = {}): Promise<{ statements: string[]; snapshot: Snapshot }> {
  // Written by this program, and checked by drizzle-kit.
  const before = JSON.parse(readFileSync(SNAPSHOT, "utf8")) as Snapshot;
  const snapshot = await generateDrizzleJson(tables, before.id);
  return { statements: await generateMigration(before, snapshot, { hints }), snapshot };
}

interface NewMigration {
  /** The file's name. */
  name: string;
  text: string;
}

/**
 * The files for these statements: indexes of tables in use are built stepwise, by a migration of their own. Pure.
 * @param options.version the number of the first file
 */
export function migrationFiles(
  statements: readonly string[],
  { version, name, oldestTain }: { version: number; name: string; oldestTain: string },
): NewMigration[] {
  const head = `-- Oldest Tain that works beside this: ${oldestTain}\n`;
  const file = (number: number, suffix: string, text: string) => ({
    name: `${String(number).padStart(4, "0")}_${name}${suffix}.sql`,
    text,
  });
  const made = statements.flatMap((statement) => /^CREATE TABLE "(\w+)"/.exec(statement)?.[1] ?? []);
  const indexes = statements.filter((statement) => {
    const [, table] = /^CREATE (?:UNIQUE )?INDEX "\w+" ON "(\w+)"/.exec(statement) ?? [];
    return table !== undefined && !made.includes(table);
  });
  const others = statements.filter((statement) => !indexes.includes(statement));
  const files: NewMigration[] = [];
  if (others.length > 0 || indexes.length === 0)
    files.push(file(version, "", `${head}${others.map((statement) => `${statement.trim()}\n`).join("")}`));
  if (indexes.length > 0) {
    // As db/apply.ts reads it, so that an interrupted build is done again.
    const steps = indexes.map(
      (one) =>
        `${one.replace(/^CREATE( UNIQUE)? INDEX "(\w+)"/, (_, unique = "", name) => `create${unique.toLowerCase()} index concurrently if not exists ${name}`).trim()}\n`,
    );
    files.push(file(version + files.length, "_indexes", `${head}-- One statement at a time.\n${steps.join("")}`));
  }
  return files;
}

/** One line for each part of the schema, so that a change is seen in a diff. */
function snapshotText({ ddl, ...rest }: Snapshot): string {
  const head = JSON.stringify(rest, null, 2).replace(/\n\}$/, "");
  return `${head},\n  "ddl": [\n${ddl.map((part) => `    ${JSON.stringify(part)}`).join(",\n")}\n  ]\n}\n`;
}

async function write({ name, custom, hints }: { name: string; custom: boolean; hints: Hint[] }): Promise<void> {
  const { statements, snapshot } = custom ? { statements: [] } : await schemaChange({ hints });
  if (!custom && statements.length === 0) return console.log("The schema has not changed: there is nothing to write");
  const last = MIGRATIONS.at(-1);
  if (!last) throw new Error("There is no migration to go on from");
  const { oldestTain } = await readMigration(last);
  for (const file of migrationFiles(statements, { version: last.version + 1, name, oldestTain })) {
    writeFileSync(new URL(file.name, DIRECTORY), file.text, { flag: "wx" });
    console.log(`db/migrations/${file.name}`);
  }
  if (snapshot) writeFileSync(SNAPSHOT, snapshotText(snapshot));
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { name: { type: "string" }, custom: { type: "boolean", default: false }, hints: { type: "string" } },
  });
  const { name, custom, hints = "[]" } = values;
  if (name === undefined || !/^[a-z0-9_]+$/.test(name)) {
    console.error(`A migration needs a name of small letters, digits and underscores\n\n${USAGE}`);
    process.exitCode = 2;
  } else {
    try {
      await write({ name, custom, hints: JSON.parse(hints) });
    } catch (error) {
      // An error of drizzle-kit's with words for people: it lacks hints, or cannot read them.
      if (!(error instanceof Error && "humanMessage" in error)) throw error;
      console.error(error.humanMessage);
      process.exitCode = 1;
    }
  }
}

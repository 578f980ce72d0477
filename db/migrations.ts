import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";

const DIRECTORY = new URL("./migrations/", import.meta.url);

/** One numbered file of `migrations/`. */
export interface Migration {
  version: number;
  /**
   * The first of the versions that it stands for. The baseline, which is the first file, stands for all up to its own:
   * they made its schema up to Tain 0.3.0. Every other migration stands for itself alone.
   */
  since: number;
  /** The file's name, such as `0047_signers.sql`. */
  name: string;
}

/**
 * Every migration that this code knows, in order. They are read at the start, because the files may be replaced by a
 * newer checkout while the process runs.
 */
export const MIGRATIONS: readonly Migration[] = readdirSync(DIRECTORY)
  .filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
  .sort()
  .map((name, at) => {
    const version = Number(name.slice(0, 4));
    return { version, since: at === 0 ? 1 : version, name };
  });

/** A migration with its statements. */
export interface ReadMigration extends Migration {
  statements: string;
  /** The oldest Tain that works with the schema after this migration. */
  oldestTain: string;
  /**
   * True for a migration that builds indexes while all other work goes on, and so runs outside a transaction. Its
   * second line says so.
   */
  isStepwise: boolean;
}

/** @throws Error as `oldestTainOf` does */
export async function readMigration(migration: Migration): Promise<ReadMigration> {
  const { name } = migration;
  const statements = await readFile(new URL(name, DIRECTORY), "utf8");
  const isStepwise = statements.split("\n", 2)[1] === "-- One statement at a time.";
  return { ...migration, statements, oldestTain: oldestTainOf(name, statements), isStepwise };
}

/** The version in the first line of a migration, such as `0.2.0`. Pure. @throws Error if the line names no version */
export function oldestTainOf(name: string, statements: string): string {
  const [, version] = /^-- Oldest Tain that works beside this: (\d+\.\d+\.\d+)\r?\n/.exec(statements) ?? [];
  if (version !== undefined) return version;
  throw new Error(
    `Migration ${name} does not say which Tain may go on beside it: let its first line be "-- Oldest Tain that works beside this: 1.2.3"`,
  );
}

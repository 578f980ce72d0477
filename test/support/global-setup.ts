import { existsSync } from "node:fs";
import pg from "pg";

/** The migrated, empty database that every test database is cloned from. Nobody else connects to it. */
export const templateName = "tain_template";

const migrations = new URL("../../db/migrate.ts", import.meta.url);

/**
 * Runs once before all test files: builds the template database.
 * Without TEST_DATABASE_URL only tests that need no database can run; the others say what is missing.
 */
export default async function setup(): Promise<void> {
  const serverUrl = process.env.TEST_DATABASE_URL;
  if (!serverUrl) return;

  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  try {
    // A server that outlives the run may hold the template of an older schema.
    await admin.query(`DROP DATABASE IF EXISTS ${templateName} WITH (FORCE)`);
    await admin.query(`CREATE DATABASE ${templateName}`);
  } finally {
    await admin.end();
  }

  if (!existsSync(migrations)) {
    console.warn("db/migrate.ts does not exist: test databases start empty");
    return;
  }
  const { migrate } = (await import(migrations.href)) as { migrate(databaseUrl: string): Promise<void> };
  const template = new URL(serverUrl);
  template.pathname = `/${templateName}`;
  await migrate(template.href);
}

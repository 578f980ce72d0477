import pg from "pg";
import { migrate } from "../../db/migrate.ts";

/** The migrated, empty database that test databases are cloned from. */
export const EMPTY_TEMPLATE = "tain_template";

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
    // A server that outlives the run may hold templates of an older schema.
    const { rows } = await admin.query<{ datname: string }>("SELECT datname FROM pg_database WHERE datname LIKE $1", [
      `${EMPTY_TEMPLATE}%`,
    ]);
    for (const { datname } of rows) await admin.query(`DROP DATABASE ${datname} WITH (FORCE)`);
    await admin.query(`CREATE DATABASE ${EMPTY_TEMPLATE}`);
  } finally {
    await admin.end();
  }
  const template = new URL(serverUrl);
  template.pathname = `/${EMPTY_TEMPLATE}`;
  await migrate(template.href);
}

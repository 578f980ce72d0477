import pg from "pg";
import { reasonOf } from "../src/failure.ts";

/** Postgres is not there, or lets nobody in by this address. */
class NoPostgresError extends Error {
  override name = "NoPostgresError";
}

/** The connection by which migrations are planned and made. @throws NoPostgresError */
export async function openMigrator(databaseUrl: string): Promise<pg.Client> {
  try {
    const client = new pg.Client({ connectionString: databaseUrl, application_name: "tain migrate" });
    await client.connect();
    return client;
  } catch (error) {
    // The reason may say which server it is, never its password.
    const message = `Postgres cannot be used (${reasonOf(error)}): see that DATABASE_URL is right and the server runs`;
    throw new NoPostgresError(message);
  }
}

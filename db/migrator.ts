import pg from "pg";
import { reasonOf } from "../src/failure.ts";

/** Postgres is not there, or lets nobody in by this address. */
class NoPostgresError extends Error {
  override name = "NoPostgresError";
}

/** Opens the connection that plans and applies migrations. @throws NoPostgresError */
export async function openMigrator(databaseUrl: string): Promise<pg.Client> {
  try {
    const client = new pg.Client({ connectionString: databaseUrl, application_name: "tain migrate" });
    await client.connect();
    return client;
  } catch (error) {
    // The reason may name the server. It never holds the password.
    const message = `Postgres cannot be used (${reasonOf(error)}): see that DATABASE_URL is right and the server runs`;
    throw new NoPostgresError(message);
  }
}

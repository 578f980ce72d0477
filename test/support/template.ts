import { Redis } from "ioredis";
import pg from "pg";
import { migrate } from "../../db/migrate.ts";
import { printFigures } from "./figures.ts";
import type { RunStores } from "./run-stores.ts";

/** The migrated, empty database that test databases are cloned from. */
export const EMPTY_TEMPLATE = "tain_template";

/** Builds the template database anew. A server that outlives the run may hold templates with an older schema. */
export async function buildTemplate({ databaseUrl }: RunStores): Promise<void> {
  const admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  try {
    const { rows } = await admin.query<{ datname: string }>("SELECT datname FROM pg_database WHERE datname LIKE $1", [
      `${EMPTY_TEMPLATE}%`,
    ]);
    for (const { datname } of rows) await admin.query(`DROP DATABASE ${datname} WITH (FORCE)`);
    await admin.query(`CREATE DATABASE ${EMPTY_TEMPLATE}`);
  } finally {
    await admin.end();
  }
  const template = new URL(databaseUrl);
  template.pathname = `/${EMPTY_TEMPLATE}`;
  await migrate(template.href);
}

/** Prints the versions of the run's stores, and the commands used in this run that Redis 6.2 does not have. */
export async function printUsed({ databaseUrl, redisUrl }: RunStores): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  const redis = new Redis(redisUrl);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string }>("select current_setting('server_version') as version");
    const server = await redis.info("server");
    const [, version] = /^valkey_version:(.*?)\r?$/m.exec(server) ?? /^redis_version:(.*?)\r?$/m.exec(server) ?? [];
    const stats = [...(await redis.info("commandstats")).matchAll(/^cmdstat_([^:|]+)/gm)];
    const newer: string[] = [];
    for (const name of new Set(stats.map(([, command = ""]) => command))) {
      const [, told] = (await redis.call("COMMAND", "DOCS", name)) as [string, (string | unknown[])[]] | [];
      const since = told?.[told.indexOf("since") + 1];
      const [major = 0, minor = 0] = typeof since === "string" ? since.split(".").map(Number) : [];
      if (major > 6 || (major === 6 && minor > 2)) newer.push(name);
    }
    printFigures("stores", { postgres: rows[0]?.version, redis: version, newer });
  } finally {
    redis.disconnect();
    await client.end();
  }
}

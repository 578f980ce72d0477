import { once } from "node:events";
import type { TestProject } from "vitest/node";
import { answerForStores, type RunStores } from "./run-stores.ts";

/**
 * Runs once before all test files, and opens nothing: a run of files without stores starts at once. The stores are
 * opened when the first file that needs them is loaded (database.ts).
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const answering = await answerForStores(async () => {
    const stores = await findStores();
    // To load the driver and the migrations takes 140 ms, which a run without stores saves.
    const { buildTemplate } = await import("./template.ts");
    await buildTemplate(stores);
    return stores;
  });
  project.provide("storesSocket", answering.socket);
  return async () => {
    answering.close();
    const stores = await answering.opened();
    if (stores && process.env.TAIN_POSTGRES) await (await import("./template.ts")).printUsed(stores);
  };
}

/** The stores that the environment names, or those that the launcher opens (scripts/with-stores.mjs). */
async function findStores(): Promise<RunStores> {
  const { TEST_DATABASE_URL: databaseUrl, TEST_REDIS_URL: redisUrl, TEST_STORES: from } = process.env;
  if (from === "launcher" && process.send) {
    process.send("open the stores");
    const [stores] = (await once(process, "message")) as [RunStores];
    return stores;
  }
  if (databaseUrl && redisUrl) return { databaseUrl, redisUrl };
  throw new Error(
    "TEST_DATABASE_URL or TEST_REDIS_URL is not set: run `npm test`, which starts a Postgres and a Redis for the tests",
  );
}

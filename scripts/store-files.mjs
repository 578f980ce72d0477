// Reads the addresses of stores from files, such as DATABASE_URL from DATABASE_URL_FILE.
import { readFileSync } from "node:fs";
import { Refusal } from "./voice.mjs";

/**
 * Sets DATABASE_URL and REDIS_URL from their files, so that no embedded store is started for them.
 * @param {NodeJS.ProcessEnv} env
 */
export function adoptStoreFiles(env) {
  for (const name of ["DATABASE_URL", "REDIS_URL"]) {
    const variable = `${name}_FILE`;
    const path = env[variable];
    // If both variables are set, the app itself reports the mistake.
    if (!path || env[name]) continue;
    try {
      env[name] = readFileSync(path, "utf8").trim();
    } catch (error) {
      throw new Refusal(
        `${variable} names a file that cannot be read: ${error instanceof Error ? error.message : error}`,
      );
    }
    delete env[variable];
  }
}

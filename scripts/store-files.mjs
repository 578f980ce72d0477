// The stores that the environment names by files, as DATABASE_URL_FILE does for DATABASE_URL.
import { readFileSync } from "node:fs";
import { Refusal } from "./voice.mjs";

/**
 * Puts the files' texts in the place of their names, so that nothing is embedded for what is given.
 * @param {NodeJS.ProcessEnv} env
 */
export function adoptStoreFiles(env) {
  for (const name of ["DATABASE_URL", "REDIS_URL"]) {
    const variable = `${name}_FILE`;
    const path = env[variable];
    // Both are set: the program says what is wrong.
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

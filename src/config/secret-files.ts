import { readFileSync } from "node:fs";
import { codeOf, reasonOf } from "../failure.ts";

interface ReadSecrets {
  /** With the texts of the files in place of their paths, as far as they could be read. */
  env: NodeJS.ProcessEnv;
  /** By setting: the file that its text came from. */
  paths: ReadonlyMap<string, string>;
  /** By setting: why its file cannot be used. */
  problems: ReadonlyMap<string, string>;
}

/** Reads the secrets that stand in files: `NAME_FILE` names the file for `NAME`. */
export function readSecretFiles(given: NodeJS.ProcessEnv, names: readonly string[]): ReadSecrets {
  const env = { ...given };
  const paths = new Map<string, string>();
  const problems = new Map<string, string>();
  for (const name of names) {
    const variable = `${name}_FILE`;
    const path = env[variable]?.trim();
    if (!path) continue;
    if (env[name]?.trim()) {
      problems.set(name, `${variable} is set beside ${name}: give only one of them`);
      continue;
    }
    try {
      const text = readFileSync(path, "utf8").replace(/\r?\n$/, "");
      if (text.trim() === "") throw new Error("it is empty");
      env[name] = text;
      delete env[variable];
      paths.set(name, path);
    } catch (error) {
      const reason = codeOf(error) ?? reasonOf(error);
      problems.set(name, `${variable} names a file that cannot be read: ${path} (${reason})`);
    }
  }
  return { env, paths, problems };
}

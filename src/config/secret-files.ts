import { readFileSync } from "node:fs";
import { codeOf, reasonOf } from "../failure.ts";

interface ReadSecrets {
  /** The environment, in which the text of each readable file stands under the setting's own name. */
  env: NodeJS.ProcessEnv;
  /** For each setting that was read from a file: the file's path. */
  paths: ReadonlyMap<string, string>;
  /** For each setting whose file cannot be used: the reason. */
  problems: ReadonlyMap<string, string>;
}

/** Reads secrets from files: the variable `NAME_FILE` holds the path of the file with the value of `NAME`. */
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

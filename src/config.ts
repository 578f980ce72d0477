import { join } from "node:path";
import { misspeltNames } from "./config/names.ts";
import { retiredSettings } from "./config/retired.ts";
import { readSecretFiles } from "./config/secret-files.ts";
import type { Setting } from "./config/setting.ts";
import { SETTINGS } from "./config/settings.ts";
import { reasonOf } from "./failure.ts";

export type Config = { readonly [K in keyof typeof SETTINGS]: SettingValue<(typeof SETTINGS)[K]> } & {
  /** What is set and counts no more, in words for operators. */
  readonly warnings: readonly string[];
};
type SettingValue<S extends Setting<unknown>> = S extends { default: string } | { required: true }
  ? ReturnType<S["read"]>
  : ReturnType<S["read"]> | null;

/** The environment cannot be used. The message lists every problem. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

const SECRET_NAMES: readonly string[] = Object.values<Setting<unknown>>(SETTINGS).flatMap(({ name, secret: is }) =>
  is ? [name] : [],
);

/**
 * The environment, with each secret's text in place of the file that holds it. For code that runs before `parseConfig`.
 */
export function withSecretFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return readSecretFiles(env, SECRET_NAMES).env;
}

/** What is wrong with the files of these secrets. */
export function secretFileProblems(env: NodeJS.ProcessEnv, names: readonly string[]): string[] {
  return [...readSecretFiles(env, names).problems.values()];
}

/**
 * Reads the environment once. Reads nothing else but the files that variables such as `UPSTREAM_TOKEN_FILE` name.
 * @throws ConfigError that names every problem at once
 */
export function parseConfig(given: NodeJS.ProcessEnv): Config {
  const { env, paths, problems: fileProblems } = readSecretFiles(given, SECRET_NAMES);
  const problems = [...fileProblems.values()];
  const values: Record<string, unknown> = {};
  for (const [key, { name, read, required, default: fallback }] of Object.entries<Setting<unknown>>(SETTINGS)) {
    const text = env[name]?.trim() || fallback;
    values[key] = null;
    if (text === undefined) {
      if (required && !fileProblems.has(name)) problems.push(`${name} is not set`);
      continue;
    }
    try {
      values[key] = Object.freeze(read(text));
    } catch (error) {
      const path = paths.get(name);
      const subject = path === undefined ? name : `${name}_FILE names a file (${path}) that`;
      problems.push(`${subject} ${reasonOf(error)}`);
    }
  }
  problems.push(...credentialProblems(given), ...misspelt(env));
  if (env.EDGE_OF?.trim() && env.DATABASE_REPLICA_URLS?.trim())
    problems.push("DATABASE_REPLICA_URLS is set, and EDGE_OF is: the replica of an edge is what DATABASE_URL leads to");
  problems.push(...sharedKeyProblems(values));
  const order = Object.values(SETTINGS).map(({ name }) => name);
  const placeOf = (problem: string) => order.indexOf(problem.split(" ")[0]?.replace(/_FILE$/, "") ?? "");
  problems.sort((a, b) => placeOf(a) - placeOf(b));
  if (problems.length > 0) throw new ConfigError(`Cannot start:\n  ${problems.join("\n  ")}`);
  values.warnings = retiredSettings(env);
  // The loop gives every key the value of its own reader. TypeScript has no type that says so.
  return Object.freeze(values) as Config;
}

/** A key that does two things is as good as none of its own. The message must not repeat it. */
function sharedKeyProblems({ encryptionKeys, webhookSecrets }: Record<string, unknown>): string[] {
  if (!Array.isArray(encryptionKeys) || !Array.isArray(webhookSecrets)) return [];
  return encryptionKeys.some((key) => webhookSecrets.includes(key))
    ? ["ENCRYPTION_KEY holds a value of WEBHOOK_SECRET: give it one of its own; WEBHOOK_SECRET decrypts anyway"]
    : [];
}

/** What is wrong with our credentials: upstream must know us by tokens, by an App, or by both. */
function credentialProblems(env: NodeJS.ProcessEnv): string[] {
  const isSet = (name: string) => Boolean(env[name]?.trim() || env[`${name}_FILE`]?.trim());
  const hasKey = isSet("APP_PRIVATE_KEY");
  const problems: string[] = [];
  if (isSet("APP_ID") && !hasKey)
    problems.push("APP_PRIVATE_KEY is not set, and APP_ID is: give the App's key too, or APP_PRIVATE_KEY_FILE");
  if (!isSet("APP_ID") && hasKey)
    problems.push("APP_ID is not set, and the App's private key is: give both or neither");
  // An edge needs no credential: it sends upstream no requests of its own.
  if (!isSet("APP_ID") && !hasKey && !isSet("UPSTREAM_TOKEN") && !isSet("EDGE_OF"))
    problems.push("UPSTREAM_TOKEN is not set: give a token, or a GitHub App by APP_ID and APP_PRIVATE_KEY");
  return problems;
}

/** Names that look like a misspelt setting. Without this check, such a setting would silently keep its default. */
function misspelt(env: NodeJS.ProcessEnv): string[] {
  const names = [...Object.values(SETTINGS).map(({ name }) => name), ...SECRET_NAMES.map((name) => `${name}_FILE`)];
  return misspeltNames(env, names).map(({ name, meant }) => `${name} is no setting: did you mean ${meant}?`);
}

/** The values that are never logged or printed. */
export function secretValues(config: Config): unknown[] {
  const values: Record<string, unknown> = config;
  return Object.entries<Setting<unknown>>(SETTINGS).flatMap(([key, { secret: isSecret }]) =>
    isSecret ? values[key] : [],
  );
}

/** After so long without a word of upstream's an answer says so: catch-ups come three times in it. */
export function staleAfterMs({ catchUpIntervalMs }: Pick<Config, "catchUpIntervalMs">): number {
  return 3 * catchUpIntervalMs;
}

/** The file that tells other programs how to reach a running instance. */
export function instanceFile({ home }: Pick<Config, "home">): string {
  return join(home, "instance.json");
}

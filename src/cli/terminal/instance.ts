import { randomBytes } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { type Config, instanceFile } from "../../config.ts";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { CommandError } from "./command.ts";
import { JsonError, JsonObject } from "./json.ts";

/** What other programs need to reach the instance of a TAIN_HOME, and what it mirrors. */
export interface Instance {
  /** The API's address for callers on this machine. */
  apiUrl: string;
  /** One of our own tokens: reads everything mirrored, and writes. */
  token: string;
  webhookUrl: string;
  webhookSecret: string;
  /** What encrypts targets' secrets. Null: an older version of Tain wrote the file. */
  encryptionKey: string | null;
  /** The token for `/-/status`. Null: an older version of Tain wrote the file. */
  operatorToken: string | null;
  upstreamUrl: string;
  upstreamToken: string;
  repositories: { owner: string; name: string }[];
}

/** The instance that runs, or ran last; null when there was none. */
export async function readInstance(config: Pick<Config, "home">): Promise<Instance | null> {
  const file = instanceFile(config);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw new CommandError(`${file} cannot be read: ${rootReasonOf(error)}`, { cause: error });
  }
  try {
    return parseInstance(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new CommandError(
      `${file} is not what Tain writes there (${error.message}): remove it, and the next start writes it anew`,
      { cause: error },
    );
  }
}

/** Pure. @throws JsonError */
function parseInstance(text: string): Instance {
  const json = JsonObject.parse(text);
  return {
    apiUrl: json.string("apiUrl"),
    token: json.string("token"),
    webhookUrl: json.string("webhookUrl"),
    webhookSecret: json.string("webhookSecret"),
    encryptionKey: json.has("encryptionKey") ? json.string("encryptionKey") : null,
    operatorToken: json.has("operatorToken") ? json.string("operatorToken") : null,
    upstreamUrl: json.string("upstreamUrl"),
    upstreamToken: json.string("upstreamToken"),
    repositories: json
      .objects("repositories")
      .map((each) => ({ owner: each.string("owner"), name: each.string("name") })),
  };
}

/** Only its owner may read it, and readers see the old file or the new, never half of one. */
export async function writeInstance(config: Pick<Config, "home">, instance: Instance): Promise<void> {
  const file = instanceFile(config);
  const draft = `${file}.${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(draft, `${JSON.stringify(instance, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw new CommandError(`${file} cannot be written: ${rootReasonOf(error)}`, { cause: error });
  }
}

/** The environment, completed by values that only the instance's file has. Pure. */
export function completed(env: NodeJS.ProcessEnv, instance: Instance | null): NodeJS.ProcessEnv {
  // A token belongs to its upstream, so the instance's token is not sent to another upstream.
  const isSameUpstream = !env.UPSTREAM_URL || env.UPSTREAM_URL.replace(/\/+$/, "") === instance?.upstreamUrl;
  const known =
    instance && isSameUpstream
      ? { UPSTREAM_URL: instance.upstreamUrl, UPSTREAM_TOKEN: env.UPSTREAM_TOKEN || instance.upstreamToken }
      : {};
  return {
    ...env,
    ...known,
    // A command that only reads verifies no delivery, so any secret will do.
    WEBHOOK_SECRET: env.WEBHOOK_SECRET || instance?.webhookSecret || newSecret(),
    ENCRYPTION_KEY: env.ENCRYPTION_KEY || (instance?.encryptionKey ?? undefined),
    // Log lines would stand among the command's results, and the command itself reports errors.
    LOG_LEVEL: env.LOG_LEVEL || "silent",
  };
}

export function newSecret(): string {
  return randomBytes(24).toString("hex");
}

// The files of an embedded Postgres. initdb makes them once, and later starts find them again.
import { randomBytes } from "node:crypto";
import { chown, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readIfThere, writeSecret } from "./files.mjs";
import { identity, postgresVersion } from "./postgres-binaries.mjs";
import { run } from "./processes.mjs";
import { Refusal } from "./voice.mjs";

export const SUPERUSER = "tain";
export const DATABASE = "tain";

/**
 * The directory of a cluster and its log, and the user that Postgres runs as. Undefined: our own user.
 * @typedef {{ state: string, user: import("./postgres-user.mjs").PostgresUser | undefined }} PostgresState
 */

/**
 * A cluster and its treatment. `native` holds the programs, `data` the cluster's own files. `durable`: a commit waits
 * for the disk.
 * @typedef {PostgresState & {
 *   native: string, throwAway: boolean, durable: boolean, data: string, log: string, }} Cluster
 */

/**
 * Whether there is a cluster to start. Throws a Refusal if the cluster cannot be used.
 * @param {Cluster} cluster
 */
export async function isInitialised({ data, state }) {
  const version = (await readIfThere(join(data, "PG_VERSION")))?.trim();
  if (version === undefined) return false;
  if (version !== postgresVersion()) {
    throw new Refusal(
      `${data} was made by Postgres ${version} and this is Postgres ${postgresVersion()}: move it away, and the mirror is filled again from upstream`,
    );
  }
  if ((await readIfThere(join(state, "postgres-password"))) === undefined) {
    throw new Refusal(
      `${join(state, "postgres-password")} is missing: put it back, or move ${data} away to start anew`,
    );
  }
  return true;
}

/**
 * Makes the cluster in another directory and then moves it to its place, so that an interrupted initdb leaves no half
 * cluster.
 * @param {Cluster} cluster
 */
export async function initialise(cluster) {
  const { state, user, native, data, throwAway } = cluster;
  for (const name of await readdir(state)) {
    if (name.startsWith("postgres.new-")) await rm(join(state, name), { recursive: true, force: true });
  }
  const draft = join(state, `postgres.new-${process.pid}`);
  await mkdir(draft, { mode: 0o700 });
  const password = randomBytes(24).toString("hex");
  const passwordFile = join(draft, "password");
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (user) for (const path of [draft, passwordFile]) await chown(path, user.uid, user.gid);

  const environment = { ...identity(user), cwd: "/", env: { PATH: process.env.PATH, TZ: "UTC" } };
  const made = join(draft, "data");
  const hasOwnLocale = Number(postgresVersion()) >= 17;
  await succeed(
    "initdb",
    join(native, "bin", "initdb"),
    [
      ...["-D", made, "-U", SUPERUSER, `--pwfile=${passwordFile}`, "--auth=scram-sha-256", "-E", "UTF8"],
      // Postgres's own UTF-8 locale: the bundled ICU differs from platform to platform, and so would its sorting.
      ...(hasOwnLocale
        ? ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        : ["--locale=C.UTF-8"]),
      // From version 18 on, initdb makes checksums by default.
      ...(Number(postgresVersion()) < 18 ? ["--data-checksums"] : []),
      ...(throwAway ? ["--no-sync"] : []),
    ],
    environment,
  );
  await succeed("CREATE DATABASE", join(native, "bin", "postgres"), ["--single", "-D", made, "postgres"], {
    ...environment,
    input: `CREATE DATABASE ${DATABASE};\n`,
  });

  await writeSecret(join(state, "postgres-password"), password);
  await rename(made, data);
  await rm(draft, { recursive: true, force: true });
}

/**
 * @param {string} what
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import("./processes.mjs").RunOptions} options
 */
async function succeed(what, command, args, options) {
  const { code, stderr } = await run(command, args, options);
  if (code !== 0) throw new Refusal(`Postgres could not be set up (${what}): ${lastLine(stderr)}`);
}

/**
 * The most telling line of the server's output.
 * @param {string} text
 */
export function lastLine(text) {
  const lines = text.trim().split("\n");
  return lines.findLast((line) => /FATAL|ERROR|error:/.test(line)) ?? lines.at(-1) ?? "it gave no reason";
}

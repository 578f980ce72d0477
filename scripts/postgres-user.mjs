// Postgres refuses to run as root. As root we run it as another user, who must then be able to reach its files.
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf } from "./failure.mjs";
import { run } from "./processes.mjs";
import { Refusal } from "./voice.mjs";

/** @typedef {{ name: string, uid: number, gid: number }} PostgresUser */

/**
 * The user to run Postgres as; undefined when we are an ordinary user and run it as ourselves. An existing
 * `dataDirectory` keeps its owner.
 * @param {string} dataDirectory
 * @returns {Promise<PostgresUser | undefined>}
 */
export async function findPostgresUser(dataDirectory) {
  const owner = await ownerOf(dataDirectory);
  const own = process.getuid?.();
  if (own !== 0) {
    if (owner !== undefined && owner !== own) {
      throw new Refusal(
        `${dataDirectory} belongs to another user (uid ${owner}): start as that user or as root, or set TAIN_HOME`,
      );
    }
    return undefined;
  }
  // `nobody` exists everywhere; an arbitrary number would not do, since Postgres looks its user up by name.
  for (const name of [owner || undefined, "postgres", "_postgres", "nobody"]) {
    const user = name === undefined ? undefined : await lookUp(String(name));
    if (user) return user;
  }
  throw new Refusal(
    "Postgres cannot run as root, and there is neither a user `postgres` nor `nobody`: set DATABASE_URL",
  );
}

/**
 * Whether the user may pass through every directory down to this one.
 * @param {PostgresUser} user
 * @param {string} directory
 * @returns {Promise<boolean>}
 */
export async function canEnter(user, directory) {
  const { mode, uid, gid } = await stat(directory);
  const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = dirname(directory);
  return parent === directory || (await canEnter(user, parent));
}

/**
 * @param {string} name
 * @returns {Promise<PostgresUser | undefined>}
 */
async function lookUp(name) {
  const { stdout } = await run("id", [name]);
  const [, uid, gid] = /uid=(\d+)\S* gid=(\d+)/.exec(stdout) ?? [];
  return uid === undefined || uid === "0" ? undefined : { name, uid: Number(uid), gid: Number(gid) };
}

/** @param {string} directory */
async function ownerOf(directory) {
  try {
    return (await stat(directory)).uid;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

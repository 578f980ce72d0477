// A lock file that names its holder. If that process no longer runs, the lock is taken from it.
import { link, rename, rm, writeFile } from "node:fs/promises";
import { codeOf } from "./failure.mjs";
import { readIfThere, writeSecret } from "./files.mjs";
import { isAlive, recordOf } from "./processes.mjs";

/**
 * The process that holds a lock. `leaving`: it is about to release the lock.
 * @typedef {import("./processes.mjs").ProcessRecord & { purpose: string, leaving?: boolean }} Holder
 */

/**
 * `leaving` notes in the file that the lock is about to be released, so that other processes wait for it.
 * @typedef {{ leaving(): Promise<void>, release(): Promise<void> }} Lock
 */

export class LockHeldError extends Error {
  /** @override */
  name = "LockHeldError";
  /** @readonly */
  holder;

  /**
   * @param {string} path
   * @param {Holder} holder
   */
  constructor(path, holder) {
    super(`${path} is held by process ${holder.pid} (${holder.purpose})`);
    this.holder = holder;
  }
}

/**
 * Takes the lock, or throws a LockHeldError.
 * @param {string} path
 * @param {string} purpose
 * @returns {Promise<Lock>}
 */
export async function takeLock(path, purpose) {
  const mine = { ...(await recordOf(process.pid)), purpose };
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, JSON.stringify(mine), { mode: 0o600 });
  try {
    // A hard link makes the complete file appear at once, so no process ever reads a half-written lock.
    while (!(await linked(draft, path))) {
      const seen = await readIfThere(path);
      if (seen === undefined) continue; // Released meanwhile.
      const holder = parsed(seen);
      if (holder && (await isAlive(holder))) throw new LockHeldError(path, holder);
      await setAside(path, seen);
    }
  } finally {
    await rm(draft, { force: true });
  }
  const isMine = async () => {
    const holder = parsed((await readIfThere(path)) ?? "");
    return holder?.pid === mine.pid && holder.birth === mine.birth;
  };
  return {
    leaving: async () => {
      if (await isMine()) await writeSecret(path, JSON.stringify({ ...mine, leaving: true }));
    },
    release: async () => {
      if (await isMine()) await rm(path, { force: true });
    },
  };
}

/**
 * The live process that holds the lock now, or undefined.
 * @param {string} path
 */
export async function lockHolder(path) {
  const holder = parsed((await readIfThere(path)) ?? "");
  return holder && (await isAlive(holder)) ? holder : undefined;
}

/**
 * Removes the lock of a dead holder, unless another process has replaced it between our look and our move.
 * @param {string} path
 * @param {string} seen
 */
async function setAside(path, seen) {
  const aside = `${path}.dead.${process.pid}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw error;
  }
  if ((await readIfThere(aside)) !== seen) await linked(aside, path);
  await rm(aside, { force: true });
}

/**
 * @param {string} from
 * @param {string} to
 */
async function linked(from, to) {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/**
 * Reads the holder. An unreadable file, after a full disk or a power cut, names no holder and locks nothing.
 * @param {string} text
 * @returns {Holder | undefined}
 */
function parsed(text) {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

// A lock that a dead holder cannot keep: the file names its holder, and a holder that no longer runs is set aside.
import { link, rename, rm, writeFile } from "node:fs/promises";
import { readIfThere, writeSecret } from "./files.mjs";
import { isAlive, recordOf } from "./processes.mjs";

export class LockHeldError extends Error {
  name = "LockHeldError";

  constructor(path, holder) {
    super(`${path} is held by process ${holder.pid} (${holder.purpose})`);
    this.holder = holder;
  }
}

/**
 * Takes the lock. Returns `{ leaving, release }`: `leaving` tells others that it is about to be released, so that they
 * wait for it. Throws LockHeldError, whose `holder` is `{ pid, birth, purpose, leaving }`.
 */
export async function takeLock(path, purpose) {
  const mine = { ...(await recordOf(process.pid)), purpose };
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, JSON.stringify(mine), { mode: 0o600 });
  try {
    // A link appears at once and whole, so nobody ever reads a half-written lock.
    while (!(await linked(draft, path))) {
      const seen = await readIfThere(path);
      if (seen === undefined) continue; // Released meanwhile.
      const holder = parsed(seen);
      if (await isAlive(holder)) throw new LockHeldError(path, holder);
      await setAside(path, seen);
    }
  } finally {
    await rm(draft, { force: true });
  }
  const isMine = async () => {
    const { pid, birth } = parsed((await readIfThere(path)) ?? "{}");
    return pid === mine.pid && birth === mine.birth;
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

/** Who holds the lock now, or undefined. */
export async function lockHolder(path) {
  const holder = parsed((await readIfThere(path)) ?? "{}");
  return (await isAlive(holder)) ? holder : undefined;
}

/** Removes the lock of a dead holder, unless another process has replaced it between our look and our move. */
async function setAside(path, seen) {
  const aside = `${path}.dead.${process.pid}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (error.code === "ENOENT") return;
    throw error;
  }
  if ((await readIfThere(aside)) !== seen) await linked(aside, path);
  await rm(aside, { force: true });
}

async function linked(from, to) {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** A file that a full disk or a power cut left unreadable names nobody, and so holds nothing. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

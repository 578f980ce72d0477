// Directories for files that are deleted after a run.
import { existsSync } from "node:fs";
import { realpath, statfs } from "node:fs/promises";
import { freemem, tmpdir } from "node:os";

/** Linux keeps this directory in memory. */
const IN_MEMORY = "/dev/shm";
/** A whole run of the tests needs less than half of it. */
const ROOM_BYTES = 4 * 2 ** 30;

/**
 * Directories for temporary files, the best one first. Memory is the best: a test database is some 450 files, and
 * creating and deleting them costs a disk's file system more processor time than the test itself. TMPDIR overrides this
 * choice.
 * @param {{ onDisk?: boolean }} [options] `onDisk`: what is written there must cost what a disk costs.
 * @returns {Promise<string[]>}
 */
export async function temporaryDirectories({ onDisk = false } = {}) {
  const onDisks = await Promise.all([tmpdir(), "/tmp", "/var/tmp"].map((path) => realpath(path)));
  const inMemory = !onDisk && !process.env.TMPDIR && (await hasRoom()) ? [IN_MEMORY] : [];
  return [...new Set([...inMemory, ...onDisks])];
}

/**
 * Every directory that an earlier run may have chosen.
 * @returns {Promise<string[]>}
 */
export async function everyTemporaryDirectory() {
  return [...(await temporaryDirectories({ onDisk: true })), ...(existsSync(IN_MEMORY) ? [IN_MEMORY] : [])];
}

/**
 * Whether /dev/shm and the memory have room. A container may have less memory than its machine, and a small /dev/shm.
 */
async function hasRoom() {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = await statfs(IN_MEMORY);
  // In Node 20, this function for a container's limit may be missing.
  const free = process.availableMemory?.() ?? freemem();
  return Math.min(bavail * bsize, free) >= ROOM_BYTES;
}

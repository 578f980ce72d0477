// Questions to the file system for which a missing file is an answer and not a failure.
import { constants } from "node:fs";
import { access, readFile, rename, writeFile } from "node:fs/promises";
import { codeOf } from "./failure.mjs";

/**
 * The file's text, or undefined when there is no such file.
 * @param {string} path
 */
export async function readIfThere(path) {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** @param {string} path */
export async function isExecutable(path) {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/**
 * Writes a file that only its owner may read. Readers see the old text or the new, never half of it.
 * @param {string} path
 * @param {string} text
 */
export async function writeSecret(path, text) {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}

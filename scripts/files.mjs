// The few questions to the file system whose "no" is an answer and not a failure.
import { constants } from "node:fs";
import { access, readFile, rename, writeFile } from "node:fs/promises";

/** The file's text, or undefined when there is no such file. */
export async function readIfThere(path) {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  }
}

export async function isExecutable(path) {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Writes a file that only its owner may read; readers see the old text or the new, never half of it. */
export async function writeSecret(path, text) {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}

import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
/** A browser and the packages that it needs are 100 MB. */
const INSTALL_MS = 10 * 60_000;

/** Where a program of Debian's is, or in words why it is not there. */
export type Found = { path: string } | { missing: string };

/** Finds a program, and installs its package where it is missing and this user may. */
export async function debianProgram(path: string, name: string): Promise<Found> {
  if (await isProgram(path)) return { path };
  const install = `apt-get install ${name}`;
  if (!(await isProgram("/usr/bin/apt-get"))) return { missing: `${path} is not there, and no apt-get to install it` };
  if (process.getuid?.() !== 0) return { missing: `${path} is not there, and only root may install it: ${install}` };
  const options = { timeout: INSTALL_MS, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  try {
    await run("apt-get", ["update", "-qq"], options);
    await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", name], options);
  } catch (error) {
    return { missing: `${install} failed: ${error instanceof Error ? error.message : error}` };
  }
  return (await isProgram(path)) ? { path } : { missing: `${name} was installed and brought no ${path}` };
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

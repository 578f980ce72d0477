import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Whether the program is here. If it is not and we are root, Debian's packages are installed that bring it. */
export async function hasTool(program: string, packages: readonly string[]): Promise<boolean> {
  if (await isThere(program)) return true;
  if (process.getuid?.() !== 0 || !(await isThere("apt-get"))) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const install = ["-qq", "-y", "-o", "DPkg::Lock::Timeout=60", "install", "--no-install-recommends", ...packages];
  await run("apt-get", install, { env }).catch(async () => {
    await run("apt-get", ["-qq", "update"], { env });
    await run("apt-get", install, { env });
  });
  return await isThere(program);
}

async function isThere(program: string): Promise<boolean> {
  return await run("sh", ["-c", `command -v ${program}`]).then(
    () => true,
    () => false,
  );
}

export const SCHEMAS = fileURLToPath(new URL("./schemas/", import.meta.url));

/** Installs the schemas that files are held against, unless that was done since they last changed. */
export async function installSchemas(): Promise<void> {
  const installed = statSync(`${SCHEMAS}node_modules/.package-lock.json`, { throwIfNoEntry: false });
  if (installed && installed.mtimeMs > statSync(`${SCHEMAS}package-lock.json`).mtimeMs) return;
  const child = spawn("npm", ["ci", "--ignore-scripts", "--loglevel=error", "--no-progress"], {
    cwd: SCHEMAS,
    stdio: ["ignore", process.stderr, process.stderr],
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error("`npm ci` failed in test/deploy/schemas; what it says above is the reason");
}

import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Renovate brings some 500 packages. */
const INSTALL_MS = 10 * 60_000;
const CLIENTS = fileURLToPath(new URL("../../.tain/clients/", import.meta.url));

/**
 * Installs a package of npm, unmodified and without its scripts, into a folder of its own below `.tain`; answers the
 * folder.
 */
export async function fromNpm(name: string, version: string): Promise<string> {
  const folder = join(CLIENTS, name.replace("/", "-"));
  const manifest = join(folder, "node_modules", name, "package.json");
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, "utf8")).version === version) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const options = ["--save-exact", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...options, `${name}@${version}`], {
    cwd: folder,
    timeout: INSTALL_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  return folder;
}

/** Installs packages of Debian's where this user may. Whether `check`, a command, succeeds in the end. */
export function fromDebian(check: readonly [string, ...string[]], ...packages: string[]): boolean {
  const [program, ...args] = check;
  const isThere = () => spawnSync(program, args).status === 0;
  if (isThere()) return true;
  if (process.getuid?.() !== 0) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  spawnSync("apt-get", ["update", "-qq"], { env });
  spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], { env, timeout: INSTALL_MS });
  return isThere();
}

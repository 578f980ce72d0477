import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = new URL("./", import.meta.url);

/**
 * Installs what this folder's package-lock.json asks for, unless that was done since it last changed. It is no dependency of the project: nothing
 * else needs it, and PostGraphile brings another graphql-js than ours.
 */
export async function installPeers(): Promise<void> {
  const installed = statSync(new URL("node_modules/.package-lock.json", here), { throwIfNoEntry: false });
  if (installed && installed.mtimeMs > statSync(new URL("package-lock.json", here)).mtimeMs) return;
  console.error("Installing what we compare with into bench/peers (once)");
  const child = spawn("npm", ["ci", "--ignore-scripts", "--loglevel=error", "--no-progress"], {
    cwd: fileURLToPath(here),
    stdio: ["ignore", process.stderr, process.stderr],
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error("`npm ci` failed in bench/peers; what it says above is the reason");
}

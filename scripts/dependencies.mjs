// Installs the packages of package-lock.json, unless just these are installed.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CHECKOUT, CHECKOUT_STATE, IS_PACKAGE, openStateDirectory } from "./checkout.mjs";
import { codeOf } from "./failure.mjs";
import { readIfThere } from "./files.mjs";
import { LockHeldError, takeLock } from "./lock.mjs";
import { Refusal, say } from "./voice.mjs";

const STAMP_FILE = join(CHECKOUT, "node_modules", ".tain-installed");

/**
 * A package as package-lock.json and npm's own record describe it.
 * @typedef {{
 *   version?: string, integrity?: string, optional?: boolean,
 *   os?: string[], cpu?: string[], libc?: string[],
 * }} Package
 */

/**
 * The packages, by the paths of their directories.
 * @typedef {{ packages: Record<string, Package> }} Lock
 */

/** How long another launcher may take to install. */
const PATIENCE_MS = 15 * 60_000;

/** @param {AbortSignal} signal Interrupts a running installation. */
export async function ensureDependencies(signal) {
  if (IS_PACKAGE) return; // npm has installed the package's dependencies with it.
  const lock = await readFile(join(CHECKOUT, "package-lock.json"), "utf8");
  const wanted = createHash("sha256").update(`${process.platform} ${process.arch}\n${lock}`).digest("hex");
  if ((await readIfThere(STAMP_FILE)) === wanted) return;

  if (process.env.NODE_ENV === "production") {
    // Dependencies go into a production image when it is built, with the builder's own flags.
    if (await readIfThere(join(CHECKOUT, "node_modules", ".package-lock.json"))) return;
    throw new Refusal("Dependencies are not installed: run `npm ci --omit=dev --omit=optional` first");
  }

  const lockOnInstalling = await installLock(signal);
  try {
    if ((await readIfThere(STAMP_FILE)) === wanted) return; // Another launcher has installed while we waited.
    if (!(await isInstalled(JSON.parse(lock)))) await install(signal);
    await writeFile(STAMP_FILE, wanted);
  } finally {
    await lockOnInstalling.release();
  }
}

/**
 * Whether npm's own record of node_modules agrees with the lock: true after an `npm ci` by hand. Optional packages
 * count when they are for this platform and were not left out.
 * @param {Lock} lock
 */
async function isInstalled(lock) {
  const record = await readIfThere(join(CHECKOUT, "node_modules", ".package-lock.json"));
  if (!record) return false;
  /** @type {Lock} */
  const { packages: installed } = JSON.parse(record);
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (path === "") return true;
    const found = installed[path];
    if (!found) return wanted.optional === true && !(wanted.os && isForThisPlatform(wanted));
    return found.version === wanted.version && found.integrity === wanted.integrity;
  });
}

/** @param {Package} entry */
function isForThisPlatform(entry) {
  /** @type {(allowed: string[] | undefined, own: string) => boolean} */
  const fits = (allowed, own) => !allowed || allowed.includes(own);
  return fits(entry.os, process.platform) && fits(entry.cpu, process.arch) && fits(entry.libc, libc());
}

function libc() {
  if (process.platform !== "linux") return "glibc";
  /** @type {{ header?: { glibcVersionRuntime?: string } }} */
  const report = process.report.getReport();
  return report.header?.glibcVersionRuntime ? "glibc" : "musl";
}

/** @param {AbortSignal} signal */
async function install(signal) {
  say("installing dependencies (once for each package-lock.json)");
  const [command, ...prefix] = npmCommand();
  // Under NODE_ENV=test or a user's own npmrc, npm would leave out what `npm test` needs.
  const args = [
    ...prefix,
    "ci",
    "--include=dev",
    "--include=optional",
    "--ignore-scripts",
    "--loglevel=error",
    "--no-progress",
  ];
  const child = spawn(command, args, { cwd: CHECKOUT, stdio: ["ignore", process.stderr, process.stderr] });
  const interrupt = () => child.kill("SIGTERM");
  signal.addEventListener("abort", interrupt);
  try {
    const [code] = await once(child, "close");
    signal.throwIfAborted();
    if (code !== 0) throw new Refusal("`npm ci` failed; what it says above is the reason");
  } catch (error) {
    if (codeOf(error) === "ENOENT")
      throw new Refusal("npm is needed to install the dependencies, and it is not on PATH");
    throw error;
  } finally {
    signal.removeEventListener("abort", interrupt);
  }
}

/**
 * The npm that started us, so that a chosen version of npm stays chosen.
 * @returns {[string, ...string[]]}
 */
export function npmCommand() {
  const own = process.env.npm_execpath;
  return own && basename(own) === "npm-cli.js" ? [process.execPath, own] : ["npm"];
}

/**
 * `npm start` and `npm test` may be started at the same moment in a fresh clone; only one of them installs.
 * @param {AbortSignal} signal
 */
async function installLock(signal) {
  await openStateDirectory(CHECKOUT_STATE);
  let told = false;
  for (const deadline = Date.now() + PATIENCE_MS; ; await delay(200, undefined, { signal })) {
    try {
      return await takeLock(join(CHECKOUT_STATE, "install.lock"), "installing dependencies");
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      if (Date.now() > deadline) throw new Refusal(`Process ${error.holder.pid} has been installing for 15 minutes`);
      if (!told) say(`process ${error.holder.pid} is installing dependencies, waiting for it`);
      told = true;
    }
  }
}

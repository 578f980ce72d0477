// The places of this checkout (or npm package), of the packages that npm has installed, and of an instance's state.
import { constants, existsSync } from "node:fs";
import { access, chmod, mkdir, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { codeOf } from "./failure.mjs";
import { Refusal } from "./voice.mjs";

export const CHECKOUT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** Whether this is the npm package: its sources are emitted JavaScript, and npm has installed what they need. */
export const IS_PACKAGE = !existsSync(join(CHECKOUT, "src", "cli", "main.ts"));

/** The directory of .env and .tain: the checkout, or for the npm package the current directory. */
export const PLACE = IS_PACKAGE ? process.cwd() : CHECKOUT;

/**
 * State that belongs to the place and not to an instance, so TAIN_HOME does not move it: the install lock, a fetched
 * Redis.
 */
export const CHECKOUT_STATE = join(PLACE, ".tain");

/**
 * The directory of a package that npm has installed for us. npm puts the dependencies of a package beside it or inside
 * it. If the package is missing, the directory in which it should be.
 * @param {string} name
 */
export function installedPackage(name) {
  for (let place = CHECKOUT; ; place = dirname(place)) {
    const directory = join(place, "node_modules", name);
    if (existsSync(directory)) return directory;
    if (!IS_PACKAGE || dirname(place) === place) return join(CHECKOUT, "node_modules", name);
  }
}

export function tainHome() {
  return process.env.TAIN_HOME ? resolve(process.env.TAIN_HOME) : CHECKOUT_STATE;
}

/** Reads settings from the place's .env. The environment takes precedence. */
export function readSettingsFile() {
  const file = join(PLACE, ".env");
  if (!existsSync(file)) return;
  if (!process.loadEnvFile) throw new Refusal(`Node ${process.version} cannot read .env: use Node 20.12 or newer`);
  process.loadEnvFile(file);
}

/**
 * Creates a state directory and returns its real path, or says why it cannot be used.
 * @param {string} directory
 */
export async function openStateDirectory(directory) {
  try {
    // Secrets in it are 0600 each. The user that Postgres runs as when we are root must be able to pass through.
    const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
    if (await mkdir(directory, { recursive: true, mode })) await chmod(directory, mode);
    await access(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    if (!["EACCES", "EROFS", "EPERM"].includes(codeOf(error) ?? "")) throw error;
    throw new Refusal(
      `${directory} cannot be written by this user (perhaps another user created it): set TAIN_HOME to a directory that can`,
    );
  }
  // The real path, because running servers are recognised by the name of their directory.
  return await realpath(directory);
}

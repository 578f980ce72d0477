// Finding a Redis to run: one on PATH, otherwise Debian's package unpacked for us alone, otherwise docker. For tests
// also the Valkey of Debian's backports.
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { CHECKOUT_STATE } from "./checkout.mjs";
import { codeOf } from "./failure.mjs";
import { isExecutable, readIfThere } from "./files.mjs";
import { run } from "./processes.mjs";
import { Refusal, say } from "./voice.mjs";

/**
 * A Redis that can be run. `says` names it in messages.
 * @typedef {{ kind: "program", command: string, env: NodeJS.ProcessEnv, says: string }
 *   | { kind: "docker", image: string, says: string }} RedisProgram
 */

const PROGRAMS = ["valkey-server", "redis-server", "keydb-server"];
const OLDEST = { major: 6, minor: 2 }; // BullMQ asks for it.
/** Valkey 8.1.10. The digest says which bytes run; the tag is for people. */
const DOCKER_IMAGE = "valkey/valkey:8-alpine@sha256:d2e18f3410b6f616de1417f570fa55261af2898b9c5b2cfb6781ce2373ea43d1";

/**
 * TAIN_REDIS_FROM=path|deb|docker|valkey allows one way only. `valkey` is never tried by itself.
 * @param {string} home keeps a fetched Redis
 * @param {AbortSignal} signal
 * @returns {Promise<RedisProgram>}
 */
export async function findRedisProgram(home, signal) {
  const only = process.env.TAIN_REDIS_FROM;
  const ways = new Map([
    ["path", findOnPath],
    ["deb", () => findPackaged(home, DEBIAN, signal)],
    ["docker", findDocker],
  ]);
  if (only === "valkey") ways.set(only, () => findPackaged(home, BACKPORTS, signal));
  if (only && !ways.has(only))
    throw new Refusal(`TAIN_REDIS_FROM is ${only}; it can be ${[...ways.keys(), "valkey"].join(", ")}`);
  for (const [way, find] of ways) {
    const found = only && way !== only ? undefined : await find();
    if (found) return found;
  }
  throw new Refusal(
    `No Redis could be found${only ? ` (TAIN_REDIS_FROM=${only})` : ""}: set REDIS_URL, or install Valkey or Redis ${OLDEST.major}.${OLDEST.minor} or newer ` +
      "(apt-get install redis-server, dnf install valkey, brew install valkey), or start docker",
  );
}

/**
 * Packages of Debian, in the order in which they are tried, and the folder that they are unpacked into.
 * @typedef {{ folder: string, packages: string[], withBackports: boolean }} Packaged
 */

/** @type {Packaged} */
const DEBIAN = { folder: "redis-deb", packages: ["redis-server", "valkey-server"], withBackports: false };
/** @type {Packaged} */
const BACKPORTS = { folder: "valkey-deb", packages: ["valkey-server"], withBackports: true };

/** @returns {Promise<RedisProgram | undefined>} */
async function findOnPath() {
  const directories = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  for (const program of PROGRAMS) {
    for (const directory of directories) {
      const command = join(directory, program);
      if (!(await isExecutable(command))) continue;
      const found = await usable(command, process.env, `${program} from PATH`);
      if (found) return found;
    }
  }
}

/**
 * @param {string} home
 * @param {Packaged} packaged
 * @param {AbortSignal} signal
 * @returns {Promise<RedisProgram | undefined>}
 */
async function findPackaged(home, { folder, packages, withBackports }, signal) {
  for (const place of [join(home, folder), join(CHECKOUT_STATE, folder)]) {
    const found = await usableUnpacked(place);
    if (found) return found;
  }
  const tools = await Promise.all(["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].map(isExecutable));
  if (process.platform !== "linux" || tools.includes(false)) return undefined;
  say("no Redis here yet: fetching Debian's package into the state directory (once; nothing is installed)");
  const draft = join(home, `${folder}.${process.pid}`);
  try {
    for (const name of packages) {
      if (!(await unpackPackage(name, draft, withBackports, signal)) || !(await usableUnpacked(draft))) continue;
      await rename(draft, join(home, folder)).catch((error) => {
        // Another launcher was quicker; its copy is as good.
        if (!["ENOTEMPTY", "EEXIST"].includes(codeOf(error) ?? "")) throw error;
      });
      return await usableUnpacked(join(home, folder));
    }
    return undefined;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Unpacks the package, with those of its dependencies that the system lacks. False, after a message to the user, if
 * that fails.
 * @param {string} name
 * @param {string} draft
 * @param {boolean} withBackports
 * @param {AbortSignal} signal
 */
async function unpackPackage(name, draft, withBackports, signal) {
  await rm(draft, { recursive: true, force: true });
  const archives = join(draft, "archives");
  for (const part of ["state/lists/partial", "cache/archives/partial", "archives", "root"]) {
    await mkdir(join(draft, part), { recursive: true });
  }
  const sources = withBackports ? await addBackports(join(draft, "sources")) : {};
  // Package lists and archives go to a directory of our own. So apt needs no root, and it still verifies the
  // signatures.
  /** @param {string[]} args */
  const apt = async (...args) => {
    const options = {
      "Dir::State": join(draft, "state"),
      "Dir::State::status": "/var/lib/dpkg/status",
      "Dir::Cache": join(draft, "cache"),
      "APT::Sandbox::User": "",
      "Debug::NoLocking": "1",
      "Acquire::Languages": "none",
      "Acquire::Retries": "2",
      "Acquire::http::Timeout": "20",
      ...sources,
    };
    const given = Object.entries(options).flatMap(([option, value]) => ["-o", `${option}=${value}`]);
    return await run("/usr/bin/apt-get", [...given, ...args], {
      cwd: archives,
      signal,
      env: { ...process.env, LC_ALL: "C" },
    });
  };
  // The update fails if one source is silent, even though the others were read. So only the download's success counts.
  const update = await apt("update", "-qq");
  const plan = await apt("install", "--simulate", "--no-install-recommends", name);
  const needed = [...plan.stdout.matchAll(/^Inst (\S+)/gm)].map(([, found = ""]) => found);
  const download = await apt("download", "-qq", ...(needed.length > 0 ? needed : [name]));
  if (download.code !== 0) {
    const reason = (download.stderr || plan.stderr || update.stderr).trim().split("\n").at(-1);
    say(`Debian's ${name} could not be fetched: ${reason}`);
    return false;
  }
  for (const archive of await readdir(archives)) {
    const unpacked = await run("/usr/bin/dpkg-deb", ["-x", join(archives, archive), join(draft, "root")], { signal });
    if (unpacked.code !== 0) {
      say(`${archive} could not be unpacked: ${unpacked.stderr.trim()}`);
      return false;
    }
  }
  for (const part of ["state", "cache", "archives", "sources"])
    await rm(join(draft, part), { recursive: true, force: true });
  return true;
}

/**
 * Adds the backports of the system's release, from the same server, to its package sources. Returns apt's options.
 * @param {string} folder
 * @returns {Promise<Record<string, string>>}
 */
async function addBackports(folder) {
  await cp("/etc/apt/sources.list.d", folder, { recursive: true });
  const main = (await readIfThere("/etc/apt/sources.list")) ?? "";
  await writeFile(join(folder, "main.list"), main);
  const names = await readdir(folder);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  const [server] = /https?:\/\/\S+\/debian(?=\/?\s)/.exec(texts.join("\n")) ?? [];
  const [, release] = /^VERSION_CODENAME=(\w+)$/m.exec((await readIfThere("/etc/os-release")) ?? "") ?? [];
  if (server && release) {
    const signedBy = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
    await writeFile(join(folder, "backports.list"), `deb [${signedBy}] ${server} ${release}-backports main\n`);
  }
  return { "Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": folder };
}

/**
 * @param {string} place
 * @returns {Promise<RedisProgram | undefined>}
 */
async function usableUnpacked(place) {
  const libraries = [];
  for (const directory of ["usr/lib", "lib"]) {
    /** @type {string[]} */
    const names = await readdir(join(place, "root", directory)).catch(() => []);
    for (const name of names) if (name.includes("-linux-gnu")) libraries.push(join(place, "root", directory, name));
  }
  for (const program of PROGRAMS) {
    const command = join(place, "root", "usr", "bin", program);
    if (!(await isExecutable(command))) continue;
    const env = { ...process.env, LD_LIBRARY_PATH: libraries.join(":") };
    const found = await usable(command, env, `Debian's ${program}`);
    if (found) return found;
  }
}

/**
 * The program, if it runs here and is new enough.
 * @param {string} command
 * @param {NodeJS.ProcessEnv} env
 * @param {string} origin
 * @returns {Promise<RedisProgram | undefined>}
 */
async function usable(command, env, origin) {
  // It may be built for another platform.
  const answer = await run(command, ["--version"], { env }).catch(() => undefined);
  const [, version, major, minor] = /v=((\d+)\.(\d+)(?:\.\d+)?)/.exec(answer?.stdout ?? "") ?? [];
  if (version === undefined) return undefined;
  if (Number(major) < OLDEST.major || (Number(major) === OLDEST.major && Number(minor) < OLDEST.minor)) {
    say(`${command} is too old (${version}), ${OLDEST.major}.${OLDEST.minor} is needed: looking further`);
    return undefined;
  }
  return { kind: "program", command, env, says: `${origin} ${version}` };
}

/** @returns {Promise<RedisProgram | undefined>} */
async function findDocker() {
  const answer = await run("docker", ["info", "--format", "{{.ServerVersion}}"], { timeout: 5_000 }).catch(
    () => undefined,
  );
  if (answer?.code !== 0 || !/^\d/.test(answer.stdout)) return undefined;
  return { kind: "docker", image: DOCKER_IMAGE, says: `${DOCKER_IMAGE} in docker` };
}

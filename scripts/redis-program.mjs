// Finding a Redis to run: one on PATH, otherwise Debian's package unpacked for us alone, otherwise docker.
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { checkoutState } from "./checkout.mjs";
import { isExecutable } from "./files.mjs";
import { run } from "./processes.mjs";
import { Refusal, say } from "./voice.mjs";

const programs = ["valkey-server", "redis-server", "keydb-server"];
const ways = ["path", "deb", "docker"];
const oldest = [6, 2]; // BullMQ asks for it.
const dockerImage = "valkey/valkey:8-alpine";

/**
 * `{ kind: "program", command, env, says }` or `{ kind: "docker", image, says }`. `home` keeps a fetched one.
 * TAIN_REDIS_FROM=path|deb|docker allows one way only.
 */
export async function findRedisProgram(home, signal) {
  const only = process.env.TAIN_REDIS_FROM;
  if (only && !ways.includes(only)) throw new Refusal(`TAIN_REDIS_FROM is ${only}; it can be ${ways.join(", ")}`);
  const find = { path: findOnPath, deb: () => findPackaged(home, signal), docker: findDocker };
  for (const way of only ? [only] : ways) {
    const found = await find[way]();
    if (found) return found;
  }
  throw new Refusal(
    `No Redis could be found${only ? ` (TAIN_REDIS_FROM=${only})` : ""}: set REDIS_URL, or install Valkey or Redis ${oldest.join(".")} or newer ` +
      "(apt-get install redis-server, dnf install valkey, brew install valkey), or start docker",
  );
}

async function findOnPath() {
  const directories = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  for (const program of programs) {
    for (const directory of directories) {
      const command = join(directory, program);
      if (!(await isExecutable(command))) continue;
      const found = await usable(command, process.env, `${program} from PATH`);
      if (found) return found;
    }
  }
}

async function findPackaged(home, signal) {
  for (const place of [join(home, "redis-deb"), join(checkoutState, "redis-deb")]) {
    const found = await usableUnpacked(place);
    if (found) return found;
  }
  const tools = await Promise.all(["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].map(isExecutable));
  if (process.platform !== "linux" || tools.includes(false)) return undefined;
  say("no Redis here yet: fetching Debian's package into the state directory (once; nothing is installed)");
  const draft = join(home, `redis-deb.${process.pid}`);
  try {
    for (const name of ["redis-server", "valkey-server"]) {
      if (!(await unpackPackage(name, draft, signal)) || !(await usableUnpacked(draft))) continue;
      await rename(draft, join(home, "redis-deb")).catch((error) => {
        // Another launcher was quicker; its copy is as good.
        if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
      });
      return await usableUnpacked(join(home, "redis-deb"));
    }
    return undefined;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Unpacks the package and what it needs and the system lacks. False, with a word to the user, when it cannot. */
async function unpackPackage(name, draft, signal) {
  await rm(draft, { recursive: true, force: true });
  const archives = join(draft, "archives");
  for (const part of ["state/lists/partial", "cache/archives/partial", "archives", "root"]) {
    await mkdir(join(draft, part), { recursive: true });
  }
  // Lists and archives of our own: no root is needed, and apt still verifies the signatures.
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
    };
    const given = Object.entries(options).flatMap(([option, value]) => ["-o", `${option}=${value}`]);
    return await run("/usr/bin/apt-get", [...given, ...args], {
      cwd: archives,
      signal,
      env: { ...process.env, LC_ALL: "C" },
    });
  };
  // A source that does not answer fails the update although the others were read: what counts is the download.
  const update = await apt("update", "-qq");
  const plan = await apt("install", "--simulate", "--no-install-recommends", name);
  const needed = [...plan.stdout.matchAll(/^Inst (\S+)/gm)].map(([, found]) => found);
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
  for (const part of ["state", "cache", "archives"]) await rm(join(draft, part), { recursive: true, force: true });
  return true;
}

async function usableUnpacked(place) {
  const libraries = [];
  for (const directory of ["usr/lib", "lib"]) {
    const names = await readdir(join(place, "root", directory)).catch(() => []);
    for (const name of names) if (name.includes("-linux-gnu")) libraries.push(join(place, "root", directory, name));
  }
  for (const program of programs) {
    const command = join(place, "root", "usr", "bin", program);
    if (!(await isExecutable(command))) continue;
    const env = { ...process.env, LD_LIBRARY_PATH: libraries.join(":") };
    const found = await usable(command, env, `Debian's ${program}`);
    if (found) return found;
  }
}

async function usable(command, env, origin) {
  const answer = await run(command, ["--version"], { env }).catch(() => undefined); // For another platform, perhaps.
  const version = /v=(\d+)\.(\d+)(\.\d+)?/.exec(answer?.stdout ?? "");
  if (!version) return undefined;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    say(`${command} is too old (${version[0].slice(2)}), ${oldest.join(".")} is needed: looking further`);
    return undefined;
  }
  return { kind: "program", command, env, says: `${origin} ${version[0].slice(2)}` };
}

async function findDocker() {
  const answer = await run("docker", ["info", "--format", "{{.ServerVersion}}"], { timeout: 5_000 }).catch(
    () => undefined,
  );
  if (answer?.code !== 0 || !/^\d/.test(answer.stdout)) return undefined;
  return { kind: "docker", image: dockerImage, says: `${dockerImage} in docker` };
}

// An embedded Postgres: initialised, started, recognised after a crash of ours, stopped.
//
// A server is, in this order: absent → starting → ready → stopping → absent. Its own postmaster.pid says which, also
// to a launcher that did not start it: line 1 is its pid, line 4 its port, line 8 its state.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chown, mkdir, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readIfThere, writeSecret } from "./files.mjs";
import { freePort } from "./ports.mjs";
import { identity, preparePostgresBinaries } from "./postgres-binaries.mjs";
import { commandLineOf, hasEnded, recordOf, run, signal } from "./processes.mjs";
import { Refusal, say } from "./voice.mjs";

const superuser = "tain";
const database = "tain";
const majorVersion = "18";
const startTimeoutMs = 120_000; // Recovery after a crash reads the log since the last checkpoint.
const stopTimeoutMs = 30_000;
const lockRetryMs = 3_000; // Backends outlive a killed postmaster for a moment and keep its shared memory.

/** Postgres's own advice is a quarter of the machine's memory; a mirror of some millions of issues fits into the largest. */
const buffersMb = Math.round(Math.min(Math.max(memoryBytes() / 4, 128 * 2 ** 20), 8 * 2 ** 30) / 2 ** 20);
const durableSettings = {
  shared_buffers: `${buffersMb}MB`,
  effective_cache_size: `${2 * buffersMb}MB`,
  max_wal_size: "2GB",
  random_page_cost: "1.1",
};
/** Nothing in a throw-away cluster is worth waiting for a disk, unless it is to be measured. */
const throwAwaySettings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_wal_size: "4GB" };

/**
 * Starts the Postgres of `state`, or adopts the one that runs there. `user` as from findPostgresUser.
 * Returns `{ name, url, says, pid, exited, stop }`; `exited` resolves to a sentence when the server ends by itself.
 */
export async function openPostgres({ state, user, throwAway = false, durable = !throwAway }) {
  const native = await preparePostgresBinaries(user);
  const cluster = {
    state,
    user,
    native,
    throwAway,
    durable,
    data: join(state, "postgres"),
    log: join(state, "postgres.log"),
  };

  const running = await adopt(cluster);
  if (running) return running;
  if (!(await isInitialised(cluster))) await initialise(cluster);
  await trimLog(cluster);
  return await start(cluster);
}

/** What there is for all processes together: a container may have less than its machine. */
function memoryBytes() {
  // Node 18 knows of no limit; others answer 0 or more than there is where there is none.
  return Math.min(totalmem(), process.constrainedMemory?.() || Number.POSITIVE_INFINITY);
}

/** Where a server of `data` runs: its record, its port and its state; undefined when none does. */
export async function findPostmaster(data) {
  const lines = ((await readIfThere(join(data, "postmaster.pid"))) ?? "").split("\n");
  const pid = Number(lines[0]);
  if (!(pid > 1)) return undefined;
  const record = await recordOf(pid);
  if (record.birth === undefined) return undefined;
  const command = await commandLineOf(pid);
  const owner = command.includes(`-D ${data} `) ? "ours" : /postgres|postmaster/.test(command) ? "unclear" : "foreign";
  return { record, owner, port: Number(lines[3]), state: (lines[7] ?? "starting").trim() };
}

async function adopt(cluster) {
  const deadline = Date.now() + startTimeoutMs;
  for (;;) {
    const found = await findPostmaster(cluster.data);
    if (!found) return undefined;
    if (found.owner === "unclear") {
      throw new Refusal(`Process ${found.record.pid} may be a Postgres that uses ${cluster.data}: end it first`);
    }
    if (found.owner === "foreign") {
      // The pid in the file was reused by a stranger, at which Postgres would take its directory for locked.
      await rm(join(cluster.data, "postmaster.pid"), { force: true });
      return undefined;
    }
    if (found.state === "ready") return server(cluster, found.port, undefined, found.record);
    if (Date.now() > deadline) {
      throw new Refusal(`Postgres (process ${found.record.pid}) is still ${found.state}; see ${cluster.log}`);
    }
    await delay(20);
  }
}

async function isInitialised({ data, state }) {
  const version = (await readIfThere(join(data, "PG_VERSION")))?.trim();
  if (version === undefined) return false;
  if (version !== majorVersion) {
    throw new Refusal(
      `${data} was made by Postgres ${version} and this is Postgres ${majorVersion}: move it away, and the mirror is filled again from upstream`,
    );
  }
  if ((await readIfThere(join(state, "postgres-password"))) === undefined) {
    throw new Refusal(
      `${join(state, "postgres-password")} is missing: put it back, or move ${data} away to start anew`,
    );
  }
  return true;
}

/** Makes the cluster beside its place and moves it there once whole: an interrupted initdb leaves no half cluster. */
async function initialise(cluster) {
  const { state, user, native, data, throwAway } = cluster;
  for (const name of await readdir(state)) {
    if (name.startsWith("postgres.new-")) await rm(join(state, name), { recursive: true, force: true });
  }
  const draft = join(state, `postgres.new-${process.pid}`);
  await mkdir(draft, { mode: 0o700 });
  const password = randomBytes(24).toString("hex");
  const passwordFile = join(draft, "password");
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (user) for (const path of [draft, passwordFile]) await chown(path, user.uid, user.gid);

  const environment = { ...identity(user), cwd: "/", env: { PATH: process.env.PATH, TZ: "UTC" } };
  const made = join(draft, "data");
  await succeed(
    "initdb",
    join(native, "bin", "initdb"),
    [
      ...["-D", made, "-U", superuser, `--pwfile=${passwordFile}`, "--auth=scram-sha-256", "-E", "UTF8"],
      // Postgres's own UTF-8 locale: the bundled ICU differs from platform to platform, and so would its sorting.
      ...["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
      ...(throwAway ? ["--no-sync"] : []),
    ],
    environment,
  );
  await succeed("CREATE DATABASE", join(native, "bin", "postgres"), ["--single", "-D", made, "postgres"], {
    ...environment,
    input: `CREATE DATABASE ${database};\n`,
  });

  await writeSecret(join(state, "postgres-password"), password);
  await rename(made, data);
  await rm(draft, { recursive: true, force: true });
}

async function succeed(what, command, args, options) {
  const { code, stderr } = await run(command, args, options);
  if (code !== 0) throw new Refusal(`Postgres could not be set up (${what}): ${lastLine(stderr)}`);
}

async function start(cluster) {
  const deadline = Date.now() + lockRetryMs;
  const portFile = join(cluster.state, "postgres-port");
  let wishedPort = Number(await readIfThere(portFile)) || undefined;
  for (;;) {
    const port = await freePort(wishedPort);
    const attempt = await launch(cluster, port);
    if (attempt.ready) {
      await writeFile(portFile, String(port));
      return server(cluster, port, attempt.child, await recordOf(attempt.child.pid));
    }
    const isLocked = /"postmaster\.pid" already exists|pre-existing shared memory block/.test(attempt.said);
    const isPortTaken = /could not bind|Address already in use/.test(attempt.said);
    if (isPortTaken) wishedPort = undefined;
    if (!(isLocked || isPortTaken) || Date.now() > deadline) {
      throw new Refusal(`Postgres did not start: ${lastLine(attempt.said)} (more in ${cluster.log})`);
    }
    await delay(100);
  }
}

async function launch({ data, log, native, user, durable }, port) {
  const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", max_connections: "200" };
  Object.assign(settings, durable ? durableSettings : throwAwaySettings);
  const output = await open(log, "a", 0o600);
  const { size: before } = await output.stat();
  const child = spawn(
    join(native, "bin", "postgres"),
    [
      "-D",
      data,
      "-p",
      String(port),
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    {
      ...identity(user),
      cwd: "/",
      env: { PATH: process.env.PATH, TZ: "UTC" },
      // A group of its own: Ctrl-C in the terminal must reach the app first, and the app still needs its database.
      detached: true,
      stdio: ["ignore", output.fd, output.fd],
    },
  );
  let isGone = false;
  const gone = once(child, "exit").then(() => {
    isGone = true;
  });
  try {
    const deadline = Date.now() + startTimeoutMs;
    // The server says that it is ready in a file and nowhere else that survives us.
    while (!isGone && Date.now() < deadline) {
      const found = await findPostmaster(data);
      if (found?.record.pid === child.pid && found.state === "ready") return { ready: true, child };
      await Promise.race([delay(10), gone]);
    }
    if (!isGone) child.kill("SIGQUIT");
    await gone;
    return { ready: false, said: (await readLog(log, before)) || `it was not ready after ${startTimeoutMs / 1000} s` };
  } catch (error) {
    throw new Refusal(`${join(native, "bin", "postgres")} cannot be run: ${error.message}`, { cause: error });
  } finally {
    await output.close();
  }
}

async function server(cluster, port, child, record) {
  const password = (await readIfThere(join(cluster.state, "postgres-password"))) ?? "";
  const url = new URL(`postgres://${superuser}@127.0.0.1:${port}/${cluster.throwAway ? "postgres" : database}`);
  url.password = password;
  let isStopping = false;
  const ended = child ? once(child, "exit") : hasEnded(record, Number.POSITIVE_INFINITY, 250);
  return {
    name: "Postgres",
    url: url.href,
    says: `Postgres ${majorVersion} on 127.0.0.1:${port}${child ? "" : " (was still running)"}, data in ${cluster.data}`,
    pid: record.pid,
    exited: new Promise((resolve) => {
      ended.then(() => isStopping || resolve(`Postgres ended unexpectedly; its log is ${cluster.log}`));
    }),
    async stop() {
      isStopping = true;
      // INT disconnects clients and shuts down cleanly; QUIT leaves recovery to the next start; KILL is the last word.
      for (const [name, patienceMs] of [
        ["SIGINT", stopTimeoutMs],
        ["SIGQUIT", 5_000],
        ["SIGKILL", 5_000],
      ]) {
        if (child ? child.exitCode !== null || child.signalCode !== null : await hasEnded(record, 0)) return;
        signal(record.pid, name);
        if (await hasEnded(record, patienceMs)) return;
        say(`Postgres did not end within ${patienceMs / 1000} s of ${name}`);
      }
    },
  };
}

/** Keeps one old log: a server that runs for months must not fill the disk. */
async function trimLog({ log }) {
  const text = await stat(log).catch((error) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text && text.size > 10_000_000) await rename(log, `${log}.old`);
}

async function readLog(log, from) {
  return ((await readIfThere(log)) ?? "").slice(from);
}

function lastLine(text) {
  const lines = text.trim().split("\n");
  return lines.findLast((line) => /FATAL|ERROR|error:/.test(line)) ?? lines.at(-1) ?? "it gave no reason";
}

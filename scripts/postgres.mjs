// An embedded Postgres: starts it, recognises it after a crash of the launcher, stops it.
//
// The states of a server: absent → starting → ready → stopping → absent. Its own postmaster.pid shows the state, also
// to a launcher that did not start it: line 1 is the pid, line 4 the port, line 8 the state.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf, messageOf } from "./failure.mjs";
import { readIfThere } from "./files.mjs";
import { freePort } from "./ports.mjs";
import { identity, postgresVersion, preparePostgresBinaries } from "./postgres-binaries.mjs";
import { DATABASE, initialise, isInitialised, lastLine, SUPERUSER } from "./postgres-cluster.mjs";
import { postgresSettings } from "./postgres-settings.mjs";
import { commandLineOf, hasEnded, recordOf, signal } from "./processes.mjs";
import { unexpectedEnd } from "./store-server.mjs";
import { Refusal, say } from "./voice.mjs";

/** @typedef {import("./postgres-cluster.mjs").Cluster} Cluster */
/** @typedef {import("./processes.mjs").ProcessRecord} ProcessRecord */
/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

const START_TIMEOUT_MS = 120_000; // Recovery after a crash reads the log since the last checkpoint.
const STOP_TIMEOUT_MS = 30_000;
const LOCK_RETRY_MS = 3_000; // Backends outlive a killed postmaster for a moment and keep its shared memory.

/**
 * Starts the Postgres of `state`, or adopts the one that runs there. `user` as from findPostgresUser.
 * `durable`: a commit waits for the disk.
 * @param {import("./postgres-cluster.mjs").PostgresState & { throwAway?: boolean, durable?: boolean }} given
 * @returns {Promise<import("./store-server.mjs").StoreServer>}
 */
export async function openPostgres({ state, user, throwAway = false, durable = !throwAway }) {
  const native = await preparePostgresBinaries(user);
  /** @type {Cluster} */
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

/**
 * The server of `data`: its process, its port and its state; undefined when none runs. `owner` says whether the process
 * that postmaster.pid names is this server ("ours"), another program ("foreign"), or whether that is unknown
 * ("unclear").
 * @param {string} data
 */
export async function findPostmaster(data) {
  const lines = ((await readIfThere(join(data, "postmaster.pid"))) ?? "").split("\n");
  const pid = Number(lines[0]);
  if (!(pid > 1)) return undefined;
  const record = await recordOf(pid);
  if (record.birth === undefined) return undefined;
  const command = await commandLineOf(pid);
  return { record, owner: ownerOf(command, data), port: Number(lines[3]), state: (lines[7] ?? "starting").trim() };
}

/**
 * @param {string} command
 * @param {string} data
 */
function ownerOf(command, data) {
  if (command.includes(`-D ${data} `)) return "ours";
  return /postgres|postmaster/.test(command) ? "unclear" : "foreign";
}

/**
 * A server that takes writes is "ready", a replica "standby".
 * @param {string} state
 */
function isServing(state) {
  return state === "ready" || state === "standby";
}

/** @param {Cluster} cluster */
async function adopt(cluster) {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const found = await findPostmaster(cluster.data);
    if (!found) return undefined;
    if (found.owner === "unclear") {
      throw new Refusal(`Process ${found.record.pid} may be a Postgres that uses ${cluster.data}: end it first`);
    }
    if (found.owner === "foreign") {
      // Another program has the pid in the file by now, and Postgres would take its directory for locked.
      await rm(join(cluster.data, "postmaster.pid"), { force: true });
      return undefined;
    }
    if (isServing(found.state)) return server(cluster, found.port, undefined, found.record);
    if (Date.now() > deadline) {
      throw new Refusal(`Postgres (process ${found.record.pid}) is still ${found.state}; see ${cluster.log}`);
    }
    await delay(20);
  }
}

/** @param {Cluster} cluster */
async function start(cluster) {
  const deadline = Date.now() + LOCK_RETRY_MS;
  const portFile = join(cluster.state, "postgres-port");
  let preferredPort = Number(await readIfThere(portFile)) || undefined;
  for (;;) {
    const port = await freePort(preferredPort);
    const attempt = await launch(cluster, port);
    if (attempt.child) {
      await writeFile(portFile, String(port));
      return server(cluster, port, attempt.child, attempt.record);
    }
    const isLocked = /"postmaster\.pid" already exists|pre-existing shared memory block/.test(attempt.said);
    const isPortTaken = /could not bind|Address already in use/.test(attempt.said);
    if (isPortTaken) preferredPort = undefined;
    if (!(isLocked || isPortTaken) || Date.now() > deadline) {
      throw new Refusal(`Postgres did not start: ${lastLine(attempt.said)} (more in ${cluster.log})`);
    }
    await delay(100);
  }
}

/**
 * Starts the server and waits until it is ready. `said`: what it has logged, when it did not become ready.
 * @param {Cluster} cluster
 * @param {number} port
 * @returns {Promise<{ child: ChildProcess, record: ProcessRecord } | { child?: never, said: string }>}
 */
async function launch({ data, log, native, user, throwAway, durable }, port) {
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    ...postgresSettings({ throwAway, durable }),
  };
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
      // In its own process group the server does not get the terminal's Ctrl-C. The app stops first, and needs its
      // database until then.
      detached: true,
      stdio: ["ignore", output.fd, output.fd],
    },
  );
  let isGone = false;
  const gone = once(child, "exit").then(() => {
    isGone = true;
  });
  try {
    const deadline = Date.now() + START_TIMEOUT_MS;
    // Only this file says whether the server is ready, and a later launcher can read it too.
    while (!isGone && Date.now() < deadline) {
      const found = await findPostmaster(data);
      if (found && found.record.pid === child.pid && isServing(found.state)) return { child, record: found.record };
      await Promise.race([delay(10), gone]);
    }
    if (!isGone) child.kill("SIGQUIT");
    await gone;
    return { said: (await readLog(log, before)) || `it was not ready after ${START_TIMEOUT_MS / 1000} s` };
  } catch (error) {
    throw new Refusal(`${join(native, "bin", "postgres")} cannot be run: ${messageOf(error)}`, { cause: error });
  } finally {
    await output.close();
  }
}

/**
 * @param {Cluster} cluster
 * @param {number} port
 * @param {ChildProcess | undefined} child undefined: an earlier launcher started the server
 * @param {ProcessRecord} record
 * @returns {Promise<import("./store-server.mjs").StoreServer>}
 */
async function server(cluster, port, child, record) {
  const password = (await readIfThere(join(cluster.state, "postgres-password"))) ?? "";
  const url = new URL(`postgres://${SUPERUSER}@127.0.0.1:${port}/${cluster.throwAway ? "postgres" : DATABASE}`);
  url.password = password;
  let isStopping = false;
  const ended = child ? once(child, "exit") : hasEnded(record, Number.POSITIVE_INFINITY, 250);
  return {
    url: url.href,
    says: `Postgres ${postgresVersion()} on 127.0.0.1:${port}${child ? "" : " (was still running)"}, data in ${cluster.data}`,
    pid: record.pid,
    exited: unexpectedEnd(ended, () => isStopping, `Postgres ended unexpectedly; its log is ${cluster.log}`),
    async stop() {
      isStopping = true;
      // INT disconnects clients and shuts down cleanly. QUIT leaves recovery to the next start. KILL is the last
      // resort.
      /** @type {[NodeJS.Signals, number][]} */
      const signals = [
        ["SIGINT", STOP_TIMEOUT_MS],
        ["SIGQUIT", 5_000],
        ["SIGKILL", 5_000],
      ];
      for (const [name, patienceMs] of signals) {
        if (child ? child.exitCode !== null || child.signalCode !== null : await hasEnded(record, 0)) return;
        signal(record.pid, name);
        if (await hasEnded(record, patienceMs)) return;
        say(`Postgres did not end within ${patienceMs / 1000} s of ${name}`);
      }
    },
  };
}

/**
 * Keeps only one old log, so that a server that runs for months does not fill the disk.
 * @param {Cluster} cluster
 */
async function trimLog({ log }) {
  const text = await stat(log).catch((error) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (text && text.size > 10_000_000) await rename(log, `${log}.old`);
}

/**
 * @param {string} log
 * @param {number} from
 */
async function readLog(log, from) {
  return ((await readIfThere(log)) ?? "").slice(from);
}

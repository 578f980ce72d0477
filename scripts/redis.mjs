// An embedded Redis with an append-only file: starts it, recognises it after a crash of the launcher, stops it. A later
// launcher recognises it by its configuration file (0600), which holds its port and password.
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, open, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "./failure.mjs";
import { readIfThere, writeSecret } from "./files.mjs";
import { freePort } from "./ports.mjs";
import { hasEnded, recordOf, run, signal } from "./processes.mjs";
import { findRedisProgram } from "./redis-program.mjs";
import { askWhoListens, connectionLost, shutDown } from "./redis-protocol.mjs";
import { unexpectedEnd } from "./store-server.mjs";
import { Refusal, say } from "./voice.mjs";

/** @typedef {import("./redis-program.mjs").RedisProgram} RedisProgram */
/** @typedef {{ port: number, password: string }} Address */
/**
 * A running server. `child` and `says` are missing when an earlier launcher has started it.
 * @typedef {{ pid: number, child?: import("node:child_process").ChildProcess, says?: string }} Started
 */
/** @typedef {{ directory: string, configuration: string, log: string }} Place */

const START_TIMEOUT_MS = 120_000; // A long append-only file takes time to read.
const STOP_TIMEOUT_MS = 30_000;

/**
 * Starts the Redis of `state`, or adopts the one that runs there. `programs` is where a fetched Redis is kept; `signal`
 * interrupts the fetching.
 * @param {{ state: string, programs: string, signal: AbortSignal }} given
 * @returns {Promise<import("./store-server.mjs").StoreServer>}
 */
export async function openRedis({ state, programs, signal }) {
  const directory = join(state, "redis");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const configuration = configurationFile(state);
  const place = { directory, configuration, log: join(state, "redis.log") };

  const known = await knownAddress(configuration);
  const running = known && (await adopt(place, known));
  if (running) return running;
  const program = await findRedisProgram(programs, signal);
  if (((await sizeOf(place.log)) ?? 0) > 10_000_000) await rename(place.log, `${place.log}.old`);

  let preferredPort = known?.port;
  for (let attempt = 1; ; attempt++) {
    const address = {
      port: await freePort(preferredPort),
      password: known?.password ?? randomBytes(24).toString("hex"),
    };
    await writeSecret(place.configuration, configurationText(place, address, program));
    const started = await launch(place, address, program);
    if (started.child) return server(place, address, started);
    // Another program took the port between our look and its bind.
    preferredPort = undefined;
    if (attempt === 3 || !/already in use|could not bind|port is already allocated/i.test(started.said)) {
      throw new Refusal(`Redis did not start: ${started.said.trim().split("\n").at(-1)} (more in ${place.log})`);
    }
  }
}

/**
 * Ends the Redis that runs in `state`, if it accepts our password.
 * @param {string} state
 */
export async function endRedisIn(state) {
  const known = await knownAddress(configurationFile(state));
  if (!known || typeof (await askWhoListens(known.port, known.password)) === "string") return;
  await shutDown(known.port, known.password);
}

/** @param {string} state */
function configurationFile(state) {
  return join(state, "redis", "redis.conf");
}

/**
 * The port and the password that an earlier launcher has written.
 * @param {string} configuration
 * @returns {Promise<Address | undefined>}
 */
async function knownAddress(configuration) {
  const text = (await readIfThere(configuration)) ?? "";
  const port = Number(/^# port of 127\.0\.0\.1: (\d+)$/m.exec(text)?.[1]);
  const password = /^requirepass (\w+)$/m.exec(text)?.[1];
  return port && password ? { port, password } : undefined;
}

/**
 * @param {Place} place
 * @param {Address} address
 * @param {RedisProgram} program
 */
function configurationText({ directory }, { port, password }, program) {
  const isContained = program.kind === "docker";
  return [
    `# port of 127.0.0.1: ${port}`,
    // Inside a container every address is the container's own; docker publishes the port on 127.0.0.1 alone.
    `bind ${isContained ? "0.0.0.0" : "127.0.0.1"}`,
    `port ${isContained ? 6379 : port}`,
    `dir ${isContained ? "/data" : JSON.stringify(directory)}`,
    `requirepass ${password}`,
    // While Postgres is away, Redis alone holds the new deliveries. So it answers a write only when the write is on
    // disk.
    "appendonly yes",
    "appendfsync always",
    'save ""',
    "maxmemory-policy noeviction",
    "",
  ].join("\n");
}

/**
 * @param {Place} place
 * @param {Address} address
 */
async function adopt(place, address) {
  for (const deadline = Date.now() + START_TIMEOUT_MS; ; await delay(20)) {
    const listener = await askWhoListens(address.port, address.password);
    if (listener === "nobody" || listener === "stranger") return undefined;
    if (listener !== "silent" && listener.state === "ready") return server(place, address, { pid: listener.pid });
    if (listener === "silent" || Date.now() > deadline) {
      throw new Refusal(`Something on 127.0.0.1:${address.port}, where our Redis was, does not answer: end it first`);
    }
  }
}

/**
 * Starts the server and waits until it is ready. `said`: what it has logged, when it did not become ready.
 * @param {Place} place
 * @param {Address} address
 * @param {RedisProgram} program
 * @returns {Promise<Required<Started> | { child?: never, said: string }>}
 */
async function launch(place, address, program) {
  const output = await open(place.log, "a", 0o600);
  const { size: before } = await output.stat();
  const { command, args, env } = await commandFor(place, address, program);
  // A group of its own: Ctrl-C in the terminal must reach the app first, and the app still needs its queue.
  const child = spawn(command, args, { cwd: "/", env, detached: true, stdio: ["ignore", output.fd, output.fd] });
  let isGone = false;
  const gone = once(child, "exit").then(() => {
    isGone = true;
  });
  try {
    for (const deadline = Date.now() + START_TIMEOUT_MS; !isGone && Date.now() < deadline; ) {
      const listener = await askWhoListens(address.port, address.password);
      const isReady = typeof listener !== "string" && listener.state === "ready";
      if (isReady && !isGone && child.pid !== undefined) return { child, pid: child.pid, says: program.says };
      await Promise.race([delay(10), gone]);
    }
    if (!isGone) child.kill("SIGTERM");
    await gone;
    const said = ((await readIfThere(place.log)) ?? "").slice(before);
    return { said: said || `it was not ready after ${START_TIMEOUT_MS / 1000} s` };
  } catch (error) {
    throw new Refusal(`${command} cannot be run: ${messageOf(error)}`, { cause: error });
  } finally {
    await output.close();
  }
}

/**
 * @param {Place} place
 * @param {Address} address
 * @param {RedisProgram} program
 * @returns {Promise<{ command: string, args: string[], env: NodeJS.ProcessEnv }>}
 */
async function commandFor({ directory, configuration }, { port }, program) {
  if (program.kind === "program") return { command: program.command, args: [configuration], env: program.env };
  const name = `tain-redis-${createHash("sha256").update(directory).digest("hex").slice(0, 12)}`;
  // Removes a container that a crash has left. Its name is made of this directory, so it belongs to no other instance.
  await run("docker", ["rm", "--force", name]);
  const args = [
    ...["run", "--rm", "--name", name, "--user", `${process.getuid?.()}:${process.getgid?.()}`],
    ...["-p", `127.0.0.1:${port}:6379`, "-v", `${directory}:/data`],
    ...[program.image, "valkey-server", "/data/redis.conf"],
  ];
  return { command: "docker", args, env: process.env };
}

/**
 * @param {Place} place
 * @param {Address} address
 * @param {Started} started
 * @returns {Promise<import("./store-server.mjs").StoreServer>}
 */
async function server(place, { port, password }, { child, pid, says }) {
  const record = await recordOf(pid);
  let isStopping = false;
  const ended = child ? once(child, "exit") : connectionLost(port, password);
  return {
    url: `redis://:${password}@127.0.0.1:${port}`,
    says: `Redis on 127.0.0.1:${port} (${says ?? "was still running"}), data in ${place.directory}`,
    pid,
    exited: unexpectedEnd(ended, () => isStopping, `Redis ended unexpectedly; its log is ${place.log}`),
    async stop() {
      isStopping = true;
      if (child) signal(pid, "SIGTERM");
      else await shutDown(port, password);
      if (await Promise.race([ended.then(() => true), delay(STOP_TIMEOUT_MS, false)])) return;
      say(`Redis did not end within ${STOP_TIMEOUT_MS / 1000} s`);
      if (record.birth !== undefined && !(await hasEnded(record, 0))) signal(pid, "SIGKILL");
    },
  };
}

/** @param {string} path */
async function sizeOf(path) {
  return await stat(path).then(
    ({ size }) => size,
    () => undefined,
  );
}

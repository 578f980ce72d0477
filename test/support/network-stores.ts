/** A real Postgres and a real Redis in sites of a network, each reached by its site's address alone. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { openStateDirectory, tainHome } from "../../scripts/checkout.mjs";
import { openPostgres } from "../../scripts/postgres.mjs";
import { preparePostgresBinaries } from "../../scripts/postgres-binaries.mjs";
import { throwAwayState } from "../../scripts/postgres-state.mjs";
import { recordOf } from "../../scripts/processes.mjs";
import { findRedisProgram } from "../../scripts/redis-program.mjs";
import type { Network } from "./network.ts";
import { until } from "./patience.ts";

export interface NetworkStores extends AsyncDisposable {
  /** The address for a superuser. */
  postgresUrl: string;
  redisUrl: string;
}

const POSTGRES_PORT = 5_432;
const REDIS_PORT = 6_379;
const REDIS_PASSWORD = "only-on-this-machine";

export async function openNetworkStores(
  network: Network,
  sites: { postgres: string; redis: string },
): Promise<NetworkStores> {
  await using opening = new AsyncDisposableStack();
  const { state, user } = await throwAwayState("tain-throw-away-", { onDisk: true });
  opening.defer(() => rm(state, { recursive: true, force: true }));
  await writeFile(join(state, "owner.json"), JSON.stringify(await recordOf(process.pid)), { mode: 0o600 });
  // Postgres makes its files on this machine's own address, and then runs on them in the site.
  const made = await openPostgres({ state, user });
  await made.stop();
  const data = join(state, "postgres");
  await appendFile(join(data, "pg_hba.conf"), "host all all 10.77.0.0/16 scram-sha-256\n");
  const postgresUrl = new URL(made.url);
  postgresUrl.host = `${network.addressOf(sites.postgres)}:${POSTGRES_PORT}`;
  const native = await preparePostgresBinaries(user);
  const settings = { listen_addresses: "*", unix_socket_directories: "", max_connections: "300" };
  const postgres = [
    ...(user ? ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"] : []),
    ...[join(native, "bin", "postgres"), "-D", data, "-p", String(POSTGRES_PORT)],
    ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
  const startIn = async (
    site: string,
    [command = "", ...args]: readonly string[],
    { log, env }: { log: string; env: NodeJS.ProcessEnv },
  ) => {
    const output = await open(join(state, log), "a", 0o600);
    const [program, ...rest] = network.within(site, command, ...args);
    const child = spawn(program, rest, { cwd: "/", env, stdio: ["ignore", output.fd, output.fd] });
    await once(child, "spawn");
    await output.close();
    opening.defer(async () => {
      child.kill("SIGINT");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    });
    return () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`It has ended: see ${state}/${log}`);
    };
  };
  const runsPostgres = await startIn(sites.postgres, postgres, {
    log: "postgres-in-site.log",
    env: { PATH: process.env.PATH, TZ: "UTC" },
  });
  await until("Postgres answers in its site", async () => {
    runsPostgres();
    const client = new pg.Client({ connectionString: postgresUrl.href });
    return await client
      .connect()
      .then(() => true)
      .catch(() => false)
      .finally(() => client.end().catch(() => {}));
  });
  const program = await findRedisProgram(await openStateDirectory(tainHome()), new AbortController().signal);
  if (program.kind !== "program") throw new Error("A container's Redis cannot be in a site: install redis-server");
  const directory = join(state, "redis-in-site");
  await mkdir(directory);
  const file = join(directory, "redis.conf");
  const lines = [
    ...[`bind ${network.addressOf(sites.redis)}`, `port ${REDIS_PORT}`, `dir ${directory}`, 'save ""'],
    ...[`requirepass ${REDIS_PASSWORD}`, "appendonly yes", "appendfsync always", "maxmemory-policy noeviction"],
  ];
  await writeFile(file, `${lines.join("\n")}\n`, { mode: 0o600 });
  const runsRedis = await startIn(sites.redis, [program.command, file], {
    log: "redis-in-site.log",
    env: program.env,
  });
  const redisUrl = `redis://:${REDIS_PASSWORD}@${network.addressOf(sites.redis)}:${REDIS_PORT}`;
  await until("Redis answers in its site", async () => {
    runsRedis();
    const client = new Redis(redisUrl, { lazyConnect: true, retryStrategy: () => null });
    client.on("error", () => {}); // `ping` throws the same error.
    return await client
      .connect()
      .then(() => true)
      .catch(() => false)
      .finally(() => client.disconnect());
  });
  const opened = opening.move();
  return { postgresUrl: postgresUrl.href, redisUrl, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/**
 * Redis as it runs in production: a server with replicas that Sentinels watch, and a Cluster. Real processes on
 * 127.0.0.1.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../../scripts/ports.mjs";
import { findRedisProgram, type RedisProgram } from "../../scripts/redis-program.mjs";
import { until } from "./patience.ts";

export const TOPOLOGIES = ["sentinel", "cluster"] as const;
export type Topology = (typeof TOPOLOGIES)[number];

export interface RedisTopology extends AsyncDisposable {
  /** The address in the form of `REDIS_URL`. */
  readonly url: string;
  /** The same address for a user with no more rights than docs/operations.md asks for. */
  readonly restrictedUrl: string;
  /** Kills the server that takes writes to keys of this prefix. Answers once another server takes them. */
  failOver(prefix: string): Promise<void>;
  /** Starts the killed server again. It becomes a replica. */
  recover(): Promise<void>;
}

const PASSWORD = "only-on-this-machine";
const MASTER = "tain";
const SLOTS = 16_384;
/** A server that is silent for this long counts as gone. */
const SILENCE_MS = 700;
/** A Cluster's nodes talk to each other on their port for clients plus this number. */
const BUS = 10_000;
/** A busy machine takes seconds to start a server. */
const PATIENT = { maxRetriesPerRequest: null, retryStrategy: () => 50 };
const USER = "tain";
/** The rights that docs/scale.md gives to Tain's user. */
const RIGHTS = "~{tain}* &* +@all -@dangerous +info +config|get";

/** @param directory for the servers' files. The caller removes it. */
export async function openRedisTopology(
  of: Topology,
  { directory, programs }: { directory: string; programs: string },
): Promise<RedisTopology> {
  const program = await findRedisProgram(programs, new AbortController().signal);
  await using resources = new AsyncDisposableStack();
  const opened = of === "sentinel" ? openSentinels : openCluster;
  const topology = await opened({ directory, program }, resources);
  const owned = resources.move();
  return { ...topology, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

type Opened = Omit<RedisTopology, typeof Symbol.asyncDispose>;
type Place = { directory: string; program: RedisProgram };

/** One process, which may be killed, and started again with the same data. */
class Server {
  readonly port: number;
  /** A connection for a test's own questions to this very server. */
  readonly client: Redis;
  readonly #place: Place;
  readonly #lines: readonly string[];
  #child: ChildProcess | null = null;

  constructor(place: Place, port: number, lines: readonly string[]) {
    this.#place = place;
    this.port = port;
    this.#lines = lines;
    const password = lines.some((line) => line.startsWith("requirepass")) ? { password: PASSWORD } : {};
    this.client = new Redis({ port, host: "127.0.0.1", ...password, lazyConnect: true, ...PATIENT });
    // While the process is killed the client tries again, and the test's questions wait.
    this.client.on("error", () => {});
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  async start({ isSentinel = false } = {}): Promise<void> {
    const { program, directory } = this.#place;
    if (program.kind !== "program")
      throw new Error("A container's Redis cannot be one of several: install redis-server");
    const home = join(directory, `redis-${this.port}`);
    await mkdir(home, { recursive: true });
    const file = join(home, "redis.conf");
    const common = [`port ${this.port}`, "bind 127.0.0.1", `dir ${home}`];
    // Servers and Sentinels write what they learn into this file, so it is made only once.
    if (this.#child === null && (await this.#isNew(file)))
      await writeFile(file, [...common, ...this.#lines, ""].join("\n"));
    const output = await open(join(home, "log"), "a");
    const args = [file, ...(isSentinel ? ["--sentinel"] : [])];
    const child = spawn(program.command, args, { env: program.env, stdio: ["ignore", output.fd, output.fd] });
    await once(child, "spawn");
    await output.close();
    this.#child = child;
    const ended = once(child, "exit").then(() => "it ended");
    if ((await Promise.race([this.client.ping(), ended])) !== "PONG")
      throw new Error(`A Redis has not started: see ${home}/log`);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    this.#child = null;
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  async info(section: string): Promise<ReadonlyMap<string, string>> {
    const text = await this.client.info(section);
    return new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]));
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.kill();
  }

  async #isNew(file: string): Promise<boolean> {
    return await open(file, "r").then(
      async (handle) => {
        await handle.close();
        return false;
      },
      () => true,
    );
  }
}

/** Data are as durable as with the launcher. */
const DATA = [
  ...["appendonly yes", "appendfsync always", 'save ""', "maxmemory-policy noeviction", "repl-diskless-sync-delay 0"],
  ...[`requirepass ${PASSWORD}`, `masterauth ${PASSWORD}`],
  `user ${USER} on >${PASSWORD} ${RIGHTS}`,
];

async function openSentinels(place: Place, resources: AsyncDisposableStack): Promise<Opened> {
  const [first = 0, ...others] = await ports(3);
  const data = [first, ...others].map(
    (port) => new Server(place, port, port === first ? DATA : [...DATA, `replicaof 127.0.0.1 ${first}`]),
  );
  const sentinels = (await ports(3)).map(
    (port) =>
      new Server(place, port, [
        `sentinel monitor ${MASTER} 127.0.0.1 ${first} 2`,
        `sentinel auth-pass ${MASTER} ${PASSWORD}`,
        `sentinel down-after-milliseconds ${MASTER} ${SILENCE_MS}`,
        `sentinel failover-timeout ${MASTER} 3000`,
      ]),
  );
  for (const server of [...data, ...sentinels]) resources.defer(() => server.close());
  for (const server of data) await server.start();
  await until("the replicas follow", async () => (await data[0]?.info("replication"))?.get("connected_slaves") === "2");
  for (const sentinel of sentinels) await sentinel.start({ isSentinel: true });
  const known = async () => {
    const told = await Promise.all(sentinels.map(async (one) => (await one.info("sentinel")).get("master0") ?? ""));
    return told.every((one) => /slaves=2,sentinels=3/.test(one));
  };
  await until("the Sentinels know each other", known);
  const mastersPort = async () => {
    const told = await sentinels[0]?.client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER);
    return Array.isArray(told) ? Number(told[1]) : 0;
  };
  return topologyOf(data, {
    hosts: (access) =>
      `redis-sentinel://${access}@${sentinels.map(({ port }) => `127.0.0.1:${port}`).join()}/0?master_name=${MASTER}`,
    ownersPort: mastersPort,
  });
}

async function openCluster(place: Place, resources: AsyncDisposableStack): Promise<Opened> {
  const nodes = (await ports(6)).map(
    (port) =>
      new Server(place, port, [
        ...DATA,
        ...["cluster-enabled yes", "cluster-config-file nodes.conf", `cluster-node-timeout ${SILENCE_MS}`],
        ...["cluster-replica-validity-factor 0", "cluster-announce-ip 127.0.0.1"],
      ]),
  );
  for (const node of nodes) resources.defer(() => node.close());
  await Promise.all(nodes.map((node) => node.start()));
  const [first] = nodes;
  if (!first) throw new Error("No node was opened");
  for (const [at, node] of nodes.slice(0, 3).entries()) {
    const [from, to] = [at, at + 1].map((third) => Math.floor((third * SLOTS) / 3));
    await node.client.cluster(
      "ADDSLOTS",
      ...Array.from({ length: (to ?? 0) - (from ?? 0) }, (_, n) => (from ?? 0) + n),
    );
  }
  for (const node of nodes) await node.client.call("CLUSTER", "MEET", "127.0.0.1", first.port);
  const know = async (count: number) => {
    const told = await Promise.all(nodes.map(({ client }) => client.call("CLUSTER", "NODES")));
    return told.every((one) => String(one).match(/ connected/g)?.length === count);
  };
  await until("the nodes know each other", () => know(nodes.length));
  for (const [at, node] of nodes.slice(3).entries())
    await node.client.call("CLUSTER", "REPLICATE", String(await nodes[at]?.client.call("CLUSTER", "MYID")));
  await until("each master has a replica", async () => {
    const infos = await Promise.all(nodes.slice(0, 3).map((node) => node.info("replication")));
    return infos.every((info) => info.get("connected_slaves") === "1");
  });
  await until("the Cluster serves all slots", async () => {
    const infos = await Promise.all(nodes.map(({ client }) => client.call("CLUSTER", "INFO")));
    return infos.every((info) => String(info).includes("cluster_state:ok"));
  });
  const ownersPort = async (prefix: string) => {
    const asked = nodes.find(({ isRunning }) => isRunning);
    const slot = Number(await asked?.client.call("CLUSTER", "KEYSLOT", prefix));
    const ranges = await asked?.client.call("CLUSTER", "SLOTS");
    if (!Array.isArray(ranges)) throw new Error("The Cluster does not tell its slots");
    const range: unknown = ranges.find(([from, to]) => from <= slot && slot <= to);
    return Array.isArray(range) ? Number(range[2]?.[1]) : 0;
  };
  return topologyOf(nodes, {
    hosts: (access) => `redis-cluster://${access}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}`,
    ownersPort,
  });
}

function topologyOf(
  servers: readonly Server[],
  { hosts, ownersPort }: { hosts: (access: string) => string; ownersPort: (prefix: string) => Promise<number> },
): Opened {
  return {
    url: hosts(`:${PASSWORD}`),
    restrictedUrl: hosts(`${USER}:${PASSWORD}`),
    async failOver(prefix) {
      const ownedBy = async () => {
        const port = await ownersPort(prefix);
        return servers.find((one) => one.port === port && one.isRunning);
      };
      const owner = await ownedBy();
      if (!owner) throw new Error(`No server that runs takes writes to ${prefix}`);
      await owner.kill();
      await until("another server has taken over", async () => {
        const heir = await ownedBy();
        return heir !== undefined && (await heir.info("replication")).get("role") === "master";
      });
    },
    async recover() {
      const gone = servers.filter(({ isRunning }) => !isRunning);
      await Promise.all(gone.map((server) => server.start()));
      await until("what has come back follows", async () => {
        const infos = await Promise.all(gone.map((server) => server.info("replication")));
        return infos.every((info) => info.get("role") === "slave" && info.get("master_link_status") === "up");
      });
    },
  };
}

/** Free ports. For a Cluster, a port plus `BUS` must be a port as well. */
async function ports(count: number): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = await freePort(undefined);
    if (port + BUS < 65_536) found.add(port);
  }
  return [...found];
}

// The settings of an embedded Postgres, by what it is for and by what the machine has.
import { totalmem } from "node:os";
import { postgresVersion } from "./postgres-binaries.mjs";
import { Refusal } from "./voice.mjs";

const MB = 2 ** 20;

/**
 * A throw-away cluster need not survive a crash, so it never waits for the disk. Benchmarks ask for `durable`, to
 * measure that wait, and get what a Postgres by itself would be given.
 * @param {{ throwAway: boolean, durable: boolean }} cluster
 * @returns {Record<string, string>}
 */
export function postgresSettings({ throwAway, durable }) {
  if (!throwAway) return { max_connections: "100", ...diskSettings(beside()), ...frugalSettings() };
  const forSpeed = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_wal_size: "1GB" };
  return { max_connections: "200", ...(durable ? diskSettings(alone()) : forSpeed) };
}

/** @param {{ buffersMb: number, cacheMb: number }} size */
function diskSettings({ buffersMb, cacheMb }) {
  return {
    shared_buffers: `${buffersMb}MB`,
    effective_cache_size: `${cacheMb}MB`,
    max_wal_size: "2GB",
    random_page_cost: "1.1",
  };
}

/**
 * The instance shares its machine with others. 128 MB hold what a team's mirror reads often, and the system's cache has
 * the rest: it gives that memory back when others need it.
 */
function beside() {
  const memory = memoryMb();
  return {
    buffersMb: givenBuffersMb() ?? Math.round(Math.min(Math.max(memory / 8, 32), 128)),
    cacheMb: Math.round(memory / 2),
  };
}

/** Postgres' manual advises a quarter of the machine's memory. */
function alone() {
  const buffersMb = givenBuffersMb() ?? Math.round(Math.min(Math.max(memoryMb() / 4, 128), 8 * 1024));
  return { buffersMb, cacheMb: 2 * buffersMb };
}

/** Fewer processes, and bounds of what each takes beside the buffers. */
function frugalSettings() {
  return {
    autovacuum_max_workers: "1",
    autovacuum_work_mem: "16MB",
    max_logical_replication_workers: "0",
    max_parallel_workers_per_gather: "0",
    jit: "off",
    // From version 18 on, processes of their own read pages unless this is set.
    ...(Number(postgresVersion()) >= 18 ? { io_method: "sync" } : {}),
  };
}

function givenBuffersMb() {
  const given = process.env.TAIN_POSTGRES_BUFFERS;
  if (!given) return undefined;
  const [, mb] = /^([1-9]\d{1,6})MB$/.exec(given) ?? [];
  if (!mb) throw new Refusal(`TAIN_POSTGRES_BUFFERS is ${given}; it can be a number of megabytes, such as 512MB`);
  return Number(mb);
}

/** The memory for all processes together: a container may have less than its machine. */
function memoryMb() {
  // Without a limit, Node.js answers 0 or more than the machine has, and Node 18 lacks the function.
  return Math.min(totalmem(), process.constrainedMemory?.() || Number.POSITIVE_INFINITY) / MB;
}

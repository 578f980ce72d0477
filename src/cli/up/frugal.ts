import { availableParallelism, totalmem } from "node:os";

const MIB = 2 ** 20;

/** What a machine has for all its processes. */
export interface Machine {
  memoryBytes: number;
  cores: number;
}

export function thisMachine(): Machine {
  // A container may have less than its machine. Without a limit, Node.js answers 0 or more than the machine has.
  const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return { memoryBytes, cores: availableParallelism() };
}

/**
 * Flags for Node.js that bound its heap by what the machine has. Of young objects V8 keeps up to three times the first
 * figure, in megabytes. The second bounds old objects. It also decides how much garbage V8 lets gather: with the
 * gigabytes that a large machine has by default, four times what is in use, and with one gigabyte less than twice.
 * Whoever sets a flag in NODE_OPTIONS decides.
 */
export function heapFlags({ NODE_OPTIONS = "" }: NodeJS.ProcessEnv, { memoryBytes }: Machine): string[] {
  const memoryMb = memoryBytes / MIB;
  const flags = {
    "--max-semi-space-size": between(2, memoryMb / 256, 16),
    "--max-old-space-size": between(256, memoryMb / 4, 1_024),
  };
  return Object.entries(flags).flatMap(([flag, mb]) => (NODE_OPTIONS.includes(flag) ? [] : [`${flag}=${mb}`]));
}

/**
 * Settings of a process that shares its machine with the stores. More connections than Postgres can work for at once
 * only cost a process of Postgres each. Each arena of glibc keeps memory that others could use.
 */
export function frugalSettings(env: NodeJS.ProcessEnv, { cores }: Machine): Record<string, string> {
  return {
    DATABASE_CONNECTIONS: env.DATABASE_CONNECTIONS || String(between(4, 2 + 2 * cores, 10)),
    MALLOC_ARENA_MAX: env.MALLOC_ARENA_MAX || "2",
  };
}

function between(least: number, wanted: number, most: number): number {
  return Math.min(Math.max(Math.round(wanted), least), most);
}

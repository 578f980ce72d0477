import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";

/** What a request cost beside the event loop. */
export interface Costs {
  /** Processor time of Postgres, also after the answer. */
  postgresMs: number;
  /** How much the resident memory grew at its peak. */
  memoryBytes: number;
}

/** Statements that outlive their request are waited for, because they cost too. */
const LONGEST_MS = 60_000;
/** Linux tells processor time in these. */
const TICK_MS = 10;

/**
 * Measures from the call to the call of its answer. Linux only. The peak of the resident memory counts garbage too, so
 * it is measured rather too large.
 */
export function costsOf(pid: number, db: Pick<Database, "query">): () => Promise<() => Promise<Costs>> {
  const backends = () =>
    db.query<{ pid: number; isActive: boolean }>(sql`
      select pid, state = 'active' as "isActive" from pg_stat_activity
        where datname = current_database() and backend_type like '%backend' and pid <> pg_backend_pid()`);
  const spent = async () =>
    new Map(await Promise.all((await backends()).map(async (one) => [one.pid, await cpuMs(one.pid)] as const)));
  return async () => {
    await writeFile(`/proc/${pid}/clear_refs`, "5"); // The peak begins anew.
    const [before, resident] = [await spent(), await statusBytes(pid, "VmRSS")];
    return async () => {
      const peak = await statusBytes(pid, "VmHWM");
      for (const began = performance.now(); (await backends()).some(({ isActive }) => isActive); await delay(20))
        if (performance.now() - began > LONGEST_MS) break;
      let postgresMs = 0;
      for (const [one, ms] of await spent()) postgresMs += ms - (before.get(one) ?? 0);
      return { postgresMs, memoryBytes: Math.max(0, peak - resident) };
    };
  };
}

async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ESRCH") return null; // The connection has just been closed.
    throw error;
  });
  if (stat === null) return 0;
  // The name of the program, which may have spaces, ends with the last bracket.
  const [user = "0", system = "0"] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}

async function statusBytes(pid: number, key: "VmRSS" | "VmHWM"): Promise<number> {
  const [, kib] = new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  if (!kib) throw new Error(`Process ${pid} tells nothing of its memory`);
  return Number(kib) * 1_024;
}

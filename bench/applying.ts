import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { enqueueDeliveries } from "../src/operations/queues.ts";
import type { BenchDatabase } from "./databases.ts";
import { type History, openMirror, waitFor } from "./history.ts";

export interface Measured {
  perSecond: number;
  lost: number;
}

/** From the first delivery that was settled to the last, with as many worker processes. */
export async function applyBy(
  processes: number,
  database: BenchDatabase,
  { simulator, deliveries }: History,
): Promise<Measured> {
  await using mirror = await openMirror(database, simulator, "dispatch");
  const { ctx, env } = mirror;
  const { rows: ids } = await ctx.db.$client.query<{ id: string }>(
    "select id from deliveries where status = 'pending' order by received_at, id",
  );
  for (let start = 0; start < ids.length; start += 1_000)
    await enqueueDeliveries(
      ctx,
      ids.slice(start, start + 1_000).map(({ id }) => id),
    );
  const children = Array.from({ length: processes }, () => startWorker(env));
  try {
    await waitFor(ctx, "select count(*)::int as left from deliveries where status = 'pending'");
  } finally {
    for (const child of children) {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    }
  }
  const { rows } = await ctx.db.$client.query<{ settled: number; seconds: number }>(
    `select count(*) filter (where status in ('applied', 'ignored'))::int as settled,
      extract(epoch from max(settled_at) - min(settled_at))::float8 as seconds from deliveries where id = any($1::uuid[])`,
    [ids.map(({ id }) => id)],
  );
  const { settled, seconds } = rows[0] as { settled: number; seconds: number };
  return { perSecond: settled / seconds, lost: deliveries - settled };
}

function startWorker(env: NodeJS.ProcessEnv): ChildProcess {
  const flags = process.env.PROFILE ? ["--cpu-prof", `--cpu-prof-dir=${process.env.PROFILE}`] : [];
  return spawn(process.execPath, [...flags, fileURLToPath(new URL("apply-worker.ts", import.meta.url))], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
}


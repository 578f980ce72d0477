import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { queueCounts } from "../../src/queues/counts.ts";
import { median } from "../measure.ts";
import { residentBytesOf } from "../processes.ts";

/** Figures by name, taken each second. */
export type Samples = Map<string, number[]>;

/**
 * What waits (deliveries in the inbox, marks, jobs of each queue) and the memory of these processes, each second until
 * the signal comes.
 */
export async function sampleOn(
  ctx: Context,
  pids: Readonly<Record<string, number>>,
  signal: AbortSignal,
): Promise<{ waiting: Samples; residentBytes: Samples }> {
  const waiting: Samples = new Map();
  const residentBytes: Samples = new Map();
  const add = (samples: Samples, name: string, figure: number) => {
    const known = samples.get(name) ?? [];
    samples.set(name, known);
    known.push(figure);
  };
  for (let due = performance.now() + 1_000; !signal.aborted; due += 1_000) {
    await delay(Math.max(0, due - performance.now()));
    const rows = await ctx.db.query<{ pending: number; marks: number; overdue: number }>(sql`
      select (select count(*)::int from deliveries where status = 'pending') as pending,
        (select count(*)::int from refresh_marks) as marks,
        (select count(*)::int from refresh_marks where not_before < now() - interval '1 second') as overdue`);
    add(waiting, "pending deliveries", rows[0]?.pending ?? 0);
    add(waiting, "marks, those of the last seconds included", rows[0]?.marks ?? 0);
    add(waiting, "marks overdue", rows[0]?.overdue ?? 0);
    const queues = await queueCounts(ctx);
    for (const [queue, counts] of Object.entries(queues)) {
      add(waiting, `queue ${queue}`, counts.waiting + counts.active);
      add(waiting, `queue ${queue}, for later`, counts.delayed);
    }
    for (const [name, pid] of Object.entries(pids)) add(residentBytes, name, (await residentBytesOf(pid)).now);
  }
  return { waiting, residentBytes };
}

/**
 * How a figure came along, in these units: medians of the first and of the last tenth, the most, and what a minute adds
 * on average. Pure.
 */
export function course(figures: readonly number[], unit = 1) {
  const tenth = Math.max(1, Math.floor(figures.length / 10));
  const shown = (figure: number) => Number((figure / unit).toFixed(1));
  return {
    first: shown(median(figures.slice(0, tenth))),
    last: shown(median(figures.slice(-tenth))),
    most: shown(Math.max(...figures)),
    aMinute: shown(slope(figures) * 60),
  };
}

/** Of the line that lies nearest to figures at equal distances. Pure. */
function slope(figures: readonly number[]): number {
  const middle = (figures.length - 1) / 2;
  const mean = figures.reduce((sum, one) => sum + one, 0) / figures.length;
  let [above, below] = [0, 0];
  for (const [at, figure] of figures.entries()) {
    above += (at - middle) * (figure - mean);
    below += (at - middle) ** 2;
  }
  return below === 0 ? 0 : above / below;
}

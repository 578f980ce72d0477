import type { QuotaReport } from "../upstream/quota/report.ts";
import type { Forecast, Work } from "./status.ts";

/** GitHub docs: the windows of REST are an hour long. */
const REST_WINDOW_MS = 3_600_000;
/** Beyond this many windows a forecast is a useless guess. */
const MOST_WINDOWS = 10_000;

/**
 * When the work will be done at its present pace, the waits for quota included. It counts one REST request for each
 * page, and assumes that nobody else uses our tokens. Null while nothing moves, or before any answer has shown the
 * quota. Pure.
 * @param now milliseconds by our clock
 */
export function forecast({ requests, perSecond }: Work, quota: readonly QuotaReport[], now: number): Forecast | null {
  const sources = quota.flatMap(({ bucket, copying, resetAt, rejectedUntil }) =>
    bucket === "core" && copying && resetAt && !rejectedUntil
      ? [{ left: Math.max(0, copying.left), perWindow: copying.perWindow, resetAt: resetAt.getTime() }]
      : [],
  );
  if (perSecond <= 0 || sources.every(({ perWindow }) => perWindow <= 0)) return null;
  let at = now;
  let todo = requests;
  let waitsForQuota = false;
  for (let windows = 0; windows < MOST_WINDOWS; windows++) {
    const left = sources.reduce((sum, source) => sum + source.left, 0);
    const nextReset = Math.min(...sources.map(({ resetAt }) => resetAt));
    const byPace = (perSecond * (nextReset - at)) / 1_000;
    if (todo <= left && todo <= byPace)
      return { finishesAt: new Date(at + (todo / perSecond) * 1_000).toISOString(), waitsForQuota };
    waitsForQuota ||= left < byPace;
    let spent = Math.min(todo, left, byPace);
    todo -= spent;
    for (const source of sources) {
      const part = Math.min(source.left, spent);
      source.left -= part;
      spent -= part;
    }
    at = nextReset;
    for (const source of sources) {
      if (source.resetAt > at) continue;
      source.left = source.perWindow;
      source.resetAt += REST_WINDOW_MS;
    }
  }
  return null;
}

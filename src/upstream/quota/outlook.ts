import type { QuotaSample } from "./history.ts";
import type { QuotaReport } from "./report.ts";

/** The pace is measured over this time, within the present window. */
const PACE_MS = 10 * 60_000;
/** A shorter time is too little to measure the pace. */
const LEAST_MS = 20_000;
/** Upstream gives a reset in whole seconds, and not always the same second. */
const SAME_RESET_MS = 5_000;

/** The forecast for a bucket at the pace of the last minutes. */
export interface Outlook {
  perMinute: number;
  /** The points left when the window ends. */
  leftAtReset: number;
  /** When the bucket will be empty, before the window ends; null: it will not. */
  spentAt: Date | null;
}

type Point = QuotaSample["figures"][number] & { at: number };

/**
 * Each report with its outlook: null while too little is known, or once the window is over. A first copy stops before
 * the quota is spent, so its pace foretells nothing. Pure.
 * @param history the oldest first; null: unknown
 * @param copiesEndedAt since when no copy is under way; null: one is
 */
export function withOutlooks(
  reports: readonly QuotaReport[],
  history: readonly QuotaSample[] | null,
  copiesEndedAt: Date | null,
): (QuotaReport & { outlook: Outlook | null })[] {
  const known = copiesEndedAt === null ? [] : (history ?? []);
  const since = Math.max((known.at(-1)?.at ?? 0) - PACE_MS, copiesEndedAt?.getTime() ?? 0);
  // Grouped once: there may be a thousand installations.
  const points = Map.groupBy(
    known
      .filter(({ at }) => at >= since)
      .flatMap(({ at, figures }) => figures.map((figure): Point => ({ ...figure, at }))),
    ({ credential, bucket }) => `${credential} ${bucket}`,
  );
  return reports.map((report) => {
    const resetAt = report.resetAt?.getTime() ?? Number.NaN;
    const own = points.get(`${report.credential} ${report.bucket}`) ?? [];
    const outlook = outlookOf(own.filter((one) => Math.abs(one.resetAt - resetAt) < SAME_RESET_MS));
    // The last sample is seconds old, so it may show more than the report.
    const most = report.remaining ?? 0;
    return { ...report, outlook: outlook && { ...outlook, leftAtReset: Math.min(most, outlook.leftAtReset) } };
  });
}

function outlookOf(points: readonly Point[]): Outlook | null {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || last.at - first.at < LEAST_MS) return null;
  const perMs = Math.max(0, (first.remaining - last.remaining) / (last.at - first.at));
  const atReset = last.remaining - perMs * (last.resetAt - last.at);
  return {
    perMinute: perMs * 60_000,
    leftAtReset: Math.max(0, Math.round(atReset)),
    spentAt: atReset < 0 ? new Date(last.at + last.remaining / perMs) : null,
  };
}

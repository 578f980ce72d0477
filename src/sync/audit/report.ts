import type { Kind } from "../../kinds/contract/kind.ts";
import type { Phase } from "../reads/phases.ts";

/** One thing in which the mirror was not equal to upstream. */
export interface Drift {
  kind: Kind;
  /** Upstream's id, or the number of an issue or pull request. */
  key: number;
  /**
   * - absent: upstream shows it and the mirror lacks it.
   * - differs: in `fields`.
   * - gone: the mirror shows it and upstream says that it no longer exists.
   */
  drift: "absent" | "differs" | "gone";
  fields?: string[];
}

/** What an audit has found. Moments are ISO 8601, by our clock. */
export interface AuditReport {
  /** `owner/name`. */
  repository: string;
  startedAt: string;
  /** null: it stopped where it can go on. */
  finishedAt: string | null;
  /** Whether the audit repaired what it found. */
  repaired: boolean;
  /** Pages read, and how many of them upstream confirmed to be unchanged, which costs nothing. */
  pages: number;
  unchangedPages: number;
  /** Resources compared. */
  resources: number;
  /** The parts that upstream did not show, and why. They were not compared. */
  notCompared: { part: Phase; reason: string }[];
  /**
   * How many resources changed so shortly before they were compared that the two may rightly differ. With repair,
   * upstream is asked about them again.
   */
  changing: number;
  /** How much drift of each kind. */
  counts: Partial<Record<Kind, number>>;
  /** The first thousand of it. */
  drift: Drift[];
}

/** A report as it is stored. Those of earlier versions say less. */
export function reportOf(stored: AuditReport): AuditReport {
  return { ...stored, notCompared: stored.notCompared ?? [], changing: stored.changing ?? 0 };
}

const MAX_LISTED = 1_000;

export function newReport(repository: string, startedAt: Date, repaired: boolean): AuditReport {
  return {
    repository,
    startedAt: startedAt.toISOString(),
    finishedAt: null,
    repaired,
    pages: 0,
    unchangedPages: 0,
    resources: 0,
    notCompared: [],
    changing: 0,
    counts: {},
    drift: [],
  };
}

/** A resource that several pages show, such as a user, counts once. */
export function addDrift(report: AuditReport, found: readonly Drift[]): void {
  for (const one of found) {
    if (report.drift.some(({ kind, key, drift }) => kind === one.kind && key === one.key && drift === one.drift))
      continue;
    report.counts[one.kind] = (report.counts[one.kind] ?? 0) + 1;
    if (report.drift.length < MAX_LISTED) report.drift.push(one);
  }
}

export function driftCount({ counts }: Pick<AuditReport, "counts">): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

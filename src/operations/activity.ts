/**
 * What is counted for the charts of the operator's page, and how two counts of one time become one. Each has a column
 * of its own in the table `activity`.
 */
export const ACTIVITY_FIGURES = {
  /** Deliveries that were accepted. */
  arrived: "sum",
  applied: "sum",
  /** Deliveries of which nothing was to be applied, or that could not be read. */
  ignored: "sum",
  /** From the receipt until the mirror shows it, summed over the applied deliveries. */
  lagMs: "sum",
  /** The longest of them. */
  slowestMs: "max",
  /** What upstream charged of the mirror's own quota. */
  spentRequests: "sum",
  spentPoints: "sum",
  /** What upstream would have charged callers for what they were answered here. */
  sparedRequests: "sum",
  sparedPoints: "sum",
  /** Answers to callers, by where they came from: rows of the mirror, a kept answer, upstream. */
  byMirror: "sum",
  byKept: "sum",
  byForwarding: "sum",
} as const satisfies Record<string, "sum" | "max">;

export type ActivityFigure = keyof typeof ACTIVITY_FIGURES;

/** What one process has counted since its sums were last taken. */
export class ActivitySums {
  readonly #sums = new Map<ActivityFigure, number>();

  /** From now on this process tells of these figures, also while they are 0. What no process tells of is not known. */
  tellOf(...figures: readonly ActivityFigure[]): void {
    for (const figure of figures) this.add(figure, 0);
  }

  add(figure: ActivityFigure, amount: number): void {
    const before = this.#sums.get(figure) ?? 0;
    this.#sums.set(figure, ACTIVITY_FIGURES[figure] === "sum" ? before + amount : Math.max(before, amount));
  }

  /** What was counted. The sums begin anew at 0. */
  take(): ReadonlyMap<ActivityFigure, number> {
    const taken = new Map(this.#sums);
    for (const figure of taken.keys()) this.#sums.set(figure, 0);
    return taken;
  }
}

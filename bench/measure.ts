/** Which ratio of subject to reference is wanted. */
export type Goal = { atLeast: number } | { atMost: number };

/** A figure of ours against that of a reference, from the same run. */
export interface Measured {
  /** Which of several that one benchmark measures; absent where there is one alone. */
  part?: string;
  /** The unit of the figures. */
  unit: string;
  /** Medians over all rounds. */
  subject: number;
  reference: number;
  /** The median of the rounds' own ratios: what disturbs a round disturbs both sides of it. */
  ratio: number;
  /** The lowest and the highest of the rounds' ratios. */
  spread: [number, number];
  goal: Goal;
  met: boolean;
  /** Further figures, by name. */
  notes?: Record<string, unknown>;
}

/** One benchmark, in a file of its own that bears its name. */
export interface Benchmark {
  /** What is measured and against what, in words. */
  about: string;
  run(): Promise<Measured | Measured[]>;
}

/** A long run that is compared with nothing: it goes well, or it does not. In a file of its own that bears its name. */
export interface Trial {
  /** What is done, in words. */
  about: string;
  /** `problems` says what went wrong, in words; none: the trial is passed. */
  run(): Promise<{ figures: Record<string, unknown>; problems: string[] }>;
}

/** Resources that several benchmarks share. Closed when all benchmarks of the run are over. */
export const shared = new AsyncDisposableStack();

/** At least five, so that one disturbed round is not the median. */
export const ROUNDS = Number(process.env.ROUNDS ?? 5);

/**
 * Measures both in turn, `ROUNDS` times, after one round that counts for nothing. Who goes first changes from round to
 * round, so that neither always finds the machine warm. Each answers its figure.
 */
export async function alternate(
  {
    subject,
    reference,
    rounds = ROUNDS,
    warmUps = 1,
  }: { subject: () => Promise<number>; reference: () => Promise<number>; rounds?: number; warmUps?: number },
  as: { unit: string; goal: Goal; part?: string },
): Promise<Measured> {
  const pairs: [number, number][] = [];
  for (let round = -warmUps; round < rounds; round++) {
    const isOurTurn = round % 2 === 0;
    const first = await (isOurTurn ? subject : reference)();
    const second = await (isOurTurn ? reference : subject)();
    if (round >= 0) pairs.push(isOurTurn ? [first, second] : [second, first]);
  }
  return comparison(pairs, as);
}

/** The figures of both, round by round, as what is printed. Pure. */
export function comparison(
  pairs: readonly (readonly [subject: number, reference: number])[],
  { unit, goal, part }: { unit: string; goal: Goal; part?: string },
): Measured {
  const ratios = pairs.map(([subject, reference]) => subject / reference);
  const ratio = rounded(median(ratios));
  return {
    ...(part === undefined ? {} : { part }),
    unit,
    subject: rounded(median(pairs.map(([subject]) => subject))),
    reference: rounded(median(pairs.map(([, reference]) => reference))),
    ratio,
    spread: [rounded(Math.min(...ratios)), rounded(Math.max(...ratios))],
    goal,
    met: "atLeast" in goal ? ratio >= goal.atLeast : ratio <= goal.atMost,
  };
}

/** The middle one; of an even number the mean of the middle two. Pure. */
export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}

/**
 * Between these lies, with 95 % certainty, the median of all the figures that there could be: as many figures lie below
 * it as tails lie up among tossed coins, however the figures are distributed. Null for fewer than six figures, which
 * cannot say it. Pure.
 */
export function medianInterval(figures: readonly number[]): [number, number] | null {
  const sorted = figures.toSorted((a, b) => a - b);
  let [chance, tail, cut] = [0.5 ** sorted.length, 0, 0];
  for (; (tail + chance) * 2 <= 0.05; cut++) {
    tail += chance;
    chance *= (sorted.length - cut) / (cut + 1);
  }
  const [low, high] = [sorted[cut - 1], sorted[sorted.length - cut]];
  return low === undefined || high === undefined ? null : [rounded(low), rounded(high)];
}

/** Three figures are more than any run repeats. */
export function rounded(figure: number): number {
  return Number(figure.toPrecision(figure >= 1_000 ? 6 : 3));
}

import { type Load, type Loader, openLoader } from "./load.ts";
import { comparison, type Goal, type Measured, median, ROUNDS } from "./measure.ts";
import type { ServerProcess } from "./processes.ts";

/** A round is made of slices, in turn, so that what else the machine does falls on both sides. */
const SLICES = 4;
const SLICE_SECONDS = 0.25;
/** With fewer rounds much of our code was still interpreted: it is longer than that of any reference. */
const WARM_UPS = 5;

/** The questions to one of the two servers, and the server. */
export interface Side extends Pick<Load, "requests" | "status" | "numberAt"> {
  server: ServerProcess;
  /** Called after each slice, with how many requests were asked in it. */
  asked?: (answers: number) => void;
}

interface Sum {
  answers: number;
  seconds: number;
  cpuSeconds: number;
}

/** What answers cost, by the clock and by the server's CPU time for each. */
export interface Cost {
  perSecond: number;
  cpuMicros: number;
}

export function costOf({ answers, seconds, cpuSeconds }: Sum): Cost {
  return { perSecond: answers / seconds, cpuMicros: (cpuSeconds / answers) * 1e6 };
}

/**
 * Answers per second of two servers, each in a process of its own. Both are asked in turn over as many connections.
 * Rounds before the code is compiled count for nothing. The CPU time of an answer is given too (without Postgres' own);
 * it holds on a machine that others use as well.
 */
export async function alternateServers(
  { subject, reference, connections = 16 }: { subject: Side; reference: Side; connections?: number },
  as: { goal: Goal; part?: string },
): Promise<Measured> {
  await using loader = openLoader();
  const rounds: { subject: Cost; reference: Cost }[] = [];
  for (let round = -WARM_UPS; round < ROUNDS; round++) {
    const sums = {
      subject: { answers: 0, seconds: 0, cpuSeconds: 0 },
      reference: { answers: 0, seconds: 0, cpuSeconds: 0 },
    };
    for (let slice = 0; slice < SLICES; slice++) {
      const turns = [
        [sums.subject, subject],
        [sums.reference, reference],
      ] as const;
      for (const [sum, side] of slice % 2 === 0 ? turns : turns.toReversed())
        await measureSlice(loader, sum, side, { connections, seconds: SLICE_SECONDS });
    }
    if (round >= 0) rounds.push({ subject: costOf(sums.subject), reference: costOf(sums.reference) });
  }
  const [ours, theirs] = [
    median(rounds.map((one) => one.subject.cpuMicros)),
    median(rounds.map((one) => one.reference.cpuMicros)),
  ];
  return {
    ...comparison(
      rounds.map((one) => [one.subject.perSecond, one.reference.perSecond]),
      { unit: "answers/s", ...as },
    ),
    notes: {
      cpuMicros: Math.round(ours),
      referenceCpuMicros: Math.round(theirs),
      cpuRatio: Number((theirs / ours).toFixed(3)),
    },
  };
}

/** Asks for a moment, and adds what came of it to the sum. */
export async function measureSlice(
  loader: Loader,
  sum: Sum,
  { server, asked, ...questions }: Side,
  how: Pick<Load, "connections" | "seconds">,
): Promise<void> {
  const before = await server.cpuSeconds();
  const { answers, perSecond } = await loader.load({ url: server.url, ...questions, ...how });
  asked?.(answers);
  sum.cpuSeconds += (await server.cpuSeconds()) - before;
  sum.answers += answers;
  sum.seconds += answers / perSecond;
}

import { availableParallelism } from "node:os";
import { type Applied, applyBy, driftOf } from "./applying.ts";
import { sharedHistory } from "./history.ts";
import { alternate, type Benchmark, median, ROUNDS } from "./measure.ts";

export const benchmark: Benchmark = {
  about: "deliveries applied per second by two worker processes, against one",
  async run() {
    const history = await sharedHistory();
    const costs: Applied[] = [];
    let left = ROUNDS;
    let drift: string[] = [];
    const by = async (processes: number) => {
      if (processes === 2) left -= 1;
      const applied = await applyBy(processes, history, async (database) => {
        // After the last round of two workers the mirror is compared with upstream.
        if (processes === 2 && left === 0) drift = await driftOf(database, history);
      });
      costs.push(applied);
      return applied.perSecond;
    };
    const measured = await alternate(
      { subject: () => by(2), reference: () => by(1), warmUps: 0 },
      { unit: "deliveries/s", goal: { atLeast: 1.6 } },
    );
    const cores = availableParallelism();
    const micros = median(costs.map(({ workerMicros, postgresMicros }) => workerMicros + postgresMicros));
    return {
      ...measured,
      notes: {
        cores,
        // The rate if all cores did nothing else. Neither one worker nor two can do more.
        mostPerSecond: Math.round((cores * 1e6) / micros),
        lost: costs.reduce((sum, { lost }) => sum + lost, 0),
        drift: drift.length,
        ...(drift.length > 0 ? { differences: drift.slice(0, 10) } : {}),
      },
    };
  },
};

import { availableParallelism } from "node:os";
import { type Applied, applyBy } from "./applying.ts";
import { sharedHistory } from "./history.ts";
import { alternate, type Benchmark, median } from "./measure.ts";

export const benchmark: Benchmark = {
  about: "deliveries applied per second by two worker processes, against one",
  async run() {
    const history = await sharedHistory();
    const costs: Applied[] = [];
    const by = async (processes: number) => {
      const applied = await applyBy(processes, history);
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
        // What all cores could do together if they did nothing else: neither one worker nor two can do more.
        mostPerSecond: Math.round((cores * 1e6) / micros),
        lost: costs.reduce((sum, { lost }) => sum + lost, 0),
      },
    };
  },
};

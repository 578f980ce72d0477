import { applyBy, driftOf } from "./applying.ts";
import { openBenchDatabase } from "./databases.ts";
import { sharedHistory } from "./history.ts";
import { alternate, type Benchmark, type Measured, median, ROUNDS } from "./measure.ts";
import { applyPlainly } from "./reference/apply.ts";

export const benchmark: Benchmark = {
  about:
    "deliveries applied per second from the queue, by one worker process, against one prepared, committed upsert per row over one connection",
  run,
};

async function run(): Promise<Measured> {
  const history = await sharedHistory();
  const costs: { workerMicros: number; postgresMicros: number }[] = [];
  let [lost, left] = [0, ROUNDS];
  let drift: string[] = [];
  const measured = await alternate(
    {
      subject: async () => {
        left -= 1;
        const applied = await applyBy(1, history, async (database) => {
          // After the last round the mirror is compared with upstream.
          if (left === 0) drift = await driftOf(database, history);
        });
        lost += applied.lost;
        costs.push(applied);
        return applied.perSecond;
      },
      reference: async () => {
        await using plain = await openBenchDatabase(history.prepared);
        const { deliveries, seconds } = await applyPlainly(plain.url, history.simulator.url);
        return deliveries / seconds;
      },
      warmUps: 0,
    },
    { unit: "deliveries/s", goal: { atLeast: 2 } },
  );
  return {
    ...measured,
    notes: {
      deliveries: history.deliveries,
      payloadBytes: history.payloadBytes,
      workerMicros: Math.round(median(costs.map(({ workerMicros }) => workerMicros))),
      postgresMicros: Math.round(median(costs.map(({ postgresMicros }) => postgresMicros))),
      lost,
      drift: drift.length,
      ...(drift.length > 0 ? { differences: drift.slice(0, 10) } : {}),
    },
  };
}

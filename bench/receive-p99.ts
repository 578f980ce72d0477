import { openBenchDatabase } from "./databases.ts";
import { openLoader } from "./load.ts";
import { alternate, type Benchmark, median } from "./measure.ts";
import { PAYLOAD_BYTES, signedDeliveries, startReceiver, startReference } from "./receiving.ts";

const CONNECTIONS = 64;
const SECONDS = 2;

export const benchmark: Benchmark = {
  about:
    "p99 of the answer to a delivery at half the rate that the receiver can take, against p99 of one committed insert of the same row under the same load",
  async run() {
    await using database = await openBenchDatabase();
    await using plain = await openBenchDatabase();
    await using subject = await startReceiver(database);
    await using reference = await startReference("receive-p99.ts", { DATABASE_URL: plain.url });
    await using loader = openLoader();
    const ask = (server: typeof subject, seconds: number, perSecond?: number) =>
      loader.load({
        url: server.url,
        ...signedDeliveries(server),
        connections: CONNECTIONS,
        seconds,
        ...(perSecond === undefined ? {} : { perSecond }),
      });
    // The reference has to bear the rate, too.
    const most: number[] = [];
    for (const server of [subject, reference]) {
      await ask(server, SECONDS);
      most.push((await ask(server, SECONDS)).perSecond);
    }
    const perSecond = Math.floor(Math.min(...most) / 2);
    const medians = { subject: [] as number[], reference: [] as number[] };
    const p99 = async (side: keyof typeof medians) => {
      const loaded = await ask(side === "subject" ? subject : reference, SECONDS, perSecond);
      medians[side].push(loaded.p50);
      return loaded.p99;
    };
    const measured = await alternate(
      { subject: () => p99("subject"), reference: () => p99("reference") },
      { unit: "ms", goal: { atMost: 2 } },
    );
    return {
      ...measured,
      notes: {
        perSecond,
        mostPerSecond: Math.round(most[0] as number),
        referenceMostPerSecond: Math.round(most[1] as number),
        p50: median(medians.subject),
        referenceP50: median(medians.reference),
        payloadBytesMedian: PAYLOAD_BYTES.median,
      },
    };
  },
};

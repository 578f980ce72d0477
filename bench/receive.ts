import { openBenchDatabase } from "./databases.ts";
import type { Benchmark } from "./measure.ts";
import { PAYLOAD_BYTES, signedDeliveries, startReceiver, startReference } from "./receiving.ts";
import { alternateServers } from "./serving.ts";

export const benchmark: Benchmark = {
  about:
    "durable, acknowledged deliveries per second to one web process, against bare node:http that reads the body and checks the signature, and stores nothing",
  async run() {
    await using database = await openBenchDatabase();
    await using subject = await startReceiver(database);
    await using reference = await startReference("receive.ts");
    const measured = await alternateServers(
      {
        subject: { server: subject, ...signedDeliveries(subject) },
        reference: { server: reference, ...signedDeliveries(reference) },
        connections: 64,
      },
      { goal: { atLeast: 0.4 } },
    );
    return { ...measured, notes: { ...measured.notes, payloadBytesMedian: PAYLOAD_BYTES.median } };
  },
};

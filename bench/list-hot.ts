import type { Benchmark } from "./measure.ts";
import { CONNECTIONS, openSamePage } from "./same-page.ts";
import { alternateServers } from "./serving.ts";

export const benchmark: Benchmark = {
  about: "the same page of 100 issues again, unchanged, against bare node:http that serves the same bytes from memory",
  async run() {
    await using page = await openSamePage();
    const side = (server: typeof page.subject) => ({ server, requests: [page.request(server)], status: 200 });
    return await alternateServers(
      { subject: side(page.subject), reference: side(page.reference), connections: CONNECTIONS },
      { goal: { atLeast: 0.8 } },
    );
  },
};

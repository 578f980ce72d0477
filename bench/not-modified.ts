import type { Benchmark } from "./measure.ts";
import { CONNECTIONS, openSamePage } from "./same-page.ts";
import { alternateServers } from "./serving.ts";

export const benchmark: Benchmark = {
  about: "304 to a caller that has the page, against bare node:http that compares the tag and answers 304",
  async run() {
    await using page = await openSamePage();
    const side = (server: typeof page.subject) => ({
      server,
      requests: [page.request(server, page.etag)],
      status: 304,
    });
    return await alternateServers(
      { subject: side(page.subject), reference: side(page.reference), connections: CONNECTIONS },
      { goal: { atLeast: 0.7 } },
    );
  },
};

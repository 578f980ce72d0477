import { writeCursor } from "../src/api/dialect/paging.ts";
import { createdAt, openCorpus } from "./corpus.ts";
import { inTurn, startCorpusWeb } from "./corpus-web.ts";
import { GROWN } from "./growth.ts";
import { AT_ONCE, PAGE } from "./list.ts";
import { getRequest } from "./load.ts";
import type { Benchmark } from "./measure.ts";
import { alternateServers } from "./serving.ts";

/** Pages that begin one issue after the other, so that none is asked for twice within a short time. */
const PAGES = 4_000;

export const benchmark: Benchmark = {
  about:
    "pages at the end of the largest repository's issues, and those changed since the middle, against pages at the beginning",
  async run() {
    const corpus = await openCorpus(GROWN);
    const [repository] = corpus.repositories;
    if (!repository) throw new Error("The corpus is empty");
    const { server, headers } = await startCorpusWeb(corpus);
    await using web = server;
    const requests = (query: (at: number) => string) =>
      Array.from({ length: PAGES }, (_, at) =>
        getRequest(web.url, `/repos/${repository.fullName}/issues?state=all&per_page=${PAGE}&${query(at)}`, headers),
      );
    const behind = (number: number) =>
      `after=${encodeURIComponent(writeCursor([createdAt(number, repository.issues).getTime(), number], "url-safe"))}`;
    const side = (query: (at: number) => string) => inTurn(web, requests(query), AT_ONCE);
    const first = side((at) => behind(repository.issues - at));
    const last = side((at) => behind(PAGE + 1 + at));
    const middle = createdAt(Math.floor(repository.issues / 2), repository.issues).getTime();
    const since = side(
      (at) => `sort=updated&direction=asc&since=${new Date(middle + at * 60_000).toISOString().slice(0, 19)}Z`,
    );
    const goal = { atLeast: 0.8 };
    return [
      await alternateServers({ subject: last, reference: first }, { goal, part: "last" }),
      await alternateServers({ subject: since, reference: first }, { goal, part: "since" }),
    ];
  },
};

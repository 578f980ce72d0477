import { openCorpus } from "./corpus.ts";
import { startCorpusWeb } from "./corpus-web.ts";
import { alternate, type Benchmark, median } from "./measure.ts";
import { startServer } from "./processes.ts";

/** GitHub's answers took 60 to 200 ms where they were recorded. */
const DELAY_MS = 60;
const SHA = "0123456789abcdef0123456789abcdef01234567";

export const benchmark: Benchmark = {
  about:
    "a read that is forwarded, against the same of upstream itself (60 ms away); and one that is kept by its sha, against one mirrored issue",
  async run() {
    const corpus = await openCorpus({ issues: 2_000, repositories: 1 });
    await using upstream = await startServer("reference/slow-upstream.ts", { DELAY_MS: String(DELAY_MS) });
    const { server, headers } = await startCorpusWeb(corpus, {
      UPSTREAM_URL: upstream.url,
      UPSTREAM_READS: "1000000000",
      UPSTREAM_READS_PER_CALLER: "1000000000",
      UPSTREAM_CALLER_TTL: "1h",
      RATE_LIMIT_USER: "0",
    });
    await using web = server;
    const base = `/repos/${corpus.repositories[0]?.fullName}`;
    /** A caller who could ask upstream as well. */
    const theirs = { Authorization: "Bearer ghp_of-a-person" };
    let nth = 0;
    /** The median time of so many requests, one after another. */
    const took = async (
      times: number,
      address: () => string,
      expected: string | null,
      more: Record<string, string> = {},
    ): Promise<number> => {
      const figures: number[] = [];
      for (let time = 0; time < times; time++) {
        const url = address();
        const startedAt = performance.now();
        const answer = await fetch(url, { headers: { ...headers, "user-agent": "bench", ...more } });
        await answer.arrayBuffer();
        figures.push(performance.now() - startedAt);
        const outcome = answer.headers.get("x-cache");
        if (answer.status !== 200 || outcome !== expected) throw new Error(`${url}: ${answer.status} ${outcome}`);
      }
      return median(figures);
    };
    const other = () => `${base}/commits/branch-${nth++}`;
    const bySha = `${web.url}${base}/git/blobs/${SHA}`;
    await took(1, () => bySha, "miss");
    return [
      await alternate(
        {
          subject: () => took(25, () => web.url + other(), "miss", theirs),
          reference: () => took(25, () => upstream.url + other(), null, theirs),
        },
        { part: "asked", unit: "ms", goal: { atMost: 1.15 } },
      ),
      await alternate(
        {
          subject: () => took(400, () => bySha, "hit"),
          reference: () => took(400, () => `${web.url}${base}/issues/1`, null),
          warmUps: 4,
        },
        { part: "by-sha", unit: "ms", goal: { atMost: 2 } },
      ),
    ];
  },
};

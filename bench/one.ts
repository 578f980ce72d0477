import { openCorpus } from "./corpus.ts";
import { drawIssue, draws, prepareReadyIssues, startCorpusWeb } from "./corpus-web.ts";
import { READ_SIZE, requireSameBody } from "./list.ts";
import { getRequest } from "./load.ts";
import type { Benchmark } from "./measure.ts";
import { startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

const ISSUES = 20_000;

export const benchmark: Benchmark = {
  about: "one of 100,000 issues, against bare node:http with one prepared pg read of one row",
  async run() {
    const corpus = await openCorpus(READ_SIZE);
    await prepareReadyIssues(corpus);
    const { server, headers } = await startCorpusWeb(corpus);
    await using subject = server;
    await using reference = await startServer("reference/one.ts", { DATABASE_URL: corpus.database.url });
    const draw = draws(2);
    const paths = Array.from({ length: ISSUES }, () => {
      const { repository, number } = drawIssue(corpus, draw);
      return { ours: `/repos/${repository.fullName}/issues/${number}`, theirs: `/${repository.id}/${number}` };
    });
    const [first] = paths;
    await requireSameBody(subject.url + first?.ours, headers, reference.url + first?.theirs);
    return await alternateServers(
      {
        subject: {
          server: subject,
          requests: paths.map(({ ours }) => getRequest(subject.url, ours, headers)),
          status: 200,
        },
        reference: {
          server: reference,
          requests: paths.map(({ theirs }) => getRequest(reference.url, theirs)),
          status: 200,
        },
      },
      { goal: { atLeast: 0.8 } },
    );
  },
};

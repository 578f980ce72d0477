import { type Corpus, openCorpus } from "./corpus.ts";
import { drawIssue, draws, prepareReadyIssues, type Question, sidesOf, startCorpusWeb } from "./corpus-web.ts";
import { READ_SIZE, requireSameBody } from "./list.ts";
import type { Benchmark } from "./measure.ts";
import { startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

/** Several times what a cache of pages holds of them. */
const ISSUES = 60_000;
/** More requests than are answered in a slice. */
const AT_ONCE = 6_000;

export const benchmark: Benchmark = {
  about: "one of 100,000 issues, against bare node:http with one prepared pg read of one row",
  async run() {
    const corpus = await openCorpus(READ_SIZE);
    await prepareReadyIssues(corpus);
    const { server, headers } = await startCorpusWeb(corpus);
    await using subject = server;
    await using reference = await startServer("reference/one.ts", { DATABASE_URL: corpus.database.url });
    const issues = randomIssues(corpus);
    const [first] = issues;
    await requireSameBody(subject.url + first?.ours, headers, reference.url + first?.theirs);
    const sides = sidesOf(issues, { subject, reference, headers }, AT_ONCE);
    return await alternateServers(sides, { goal: { atLeast: 0.8 } });
  },
};

/** Each issue as likely as any other, as both servers are asked for it. */
export function randomIssues(corpus: Corpus): Question[] {
  const draw = draws(2);
  return Array.from({ length: ISSUES }, () => {
    const { repository, number } = drawIssue(corpus, draw);
    return { ours: `/repos/${repository.fullName}/issues/${number}`, theirs: `/${repository.id}/${number}` };
  });
}

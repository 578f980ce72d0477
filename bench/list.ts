import { writeCursor } from "../src/api/dialect/paging.ts";
import { type Corpus, createdAt, openCorpus } from "./corpus.ts";
import { drawIssue, draws, prepareReadyIssues, type Question, sidesOf, startCorpusWeb } from "./corpus-web.ts";
import type { Benchmark } from "./measure.ts";
import { startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

export const PAGE = 100;
/** Several times as many pages as a cache holds. */
const PAGES = 6_000;
/** More requests than are answered in a slice. */
export const AT_ONCE = 400;

/** The size that `list`, `one` and `naive` are stated for. */
export const READ_SIZE = { issues: 100_000, repositories: 10 };

export const benchmark: Benchmark = {
  about:
    "a page of 100 issues by cursor, random pages of 100,000 issues, against the same texts read with raw pg and joined, by the same HTTP server",
  async run() {
    const corpus = await openCorpus(READ_SIZE);
    await prepareReadyIssues(corpus);
    const { server, headers } = await startCorpusWeb(corpus);
    await using subject = server;
    await using reference = await startServer("reference/list.ts", { DATABASE_URL: corpus.database.url });
    const pages = randomPages(corpus);
    await requireSameBody(subject.url + (pages[0]?.ours ?? ""), headers, reference.url + (pages[0]?.theirs ?? ""));
    const sides = sidesOf(pages, { subject, reference, headers }, AT_ONCE);
    return await alternateServers(sides, { goal: { atLeast: 0.8 } });
  },
};

/** Pages that begin behind a random issue, as both servers are asked for them. */
export function randomPages(corpus: Corpus): Question[] {
  const draw = draws(1);
  return Array.from({ length: PAGES }, () => {
    const { repository, number } = drawIssue(corpus, draw);
    // The page begins high enough to be full.
    const before = Math.max(number, PAGE + 1);
    const cursor = writeCursor([createdAt(before, repository.issues).getTime(), before], "url-safe");
    return {
      ours: `/repos/${repository.fullName}/issues?state=all&per_page=${PAGE}&after=${encodeURIComponent(cursor)}`,
      theirs: `/repositories/${repository.id}/issues?before=${before}`,
    };
  });
}

/** @throws Error when two servers that are to be compared do not answer the same */
export async function requireSameBody(ours: string, headers: Record<string, string>, theirs: string): Promise<void> {
  const [a, b] = await Promise.all([fetch(ours, { headers }), fetch(theirs)]);
  const [left, right] = [await a.text(), await b.text()];
  if (a.status !== 200 || left !== right)
    throw new Error(
      `${ours} answers ${a.status}, ${left.length} characters, and the reference ${b.status}, ${right.length}`,
    );
}

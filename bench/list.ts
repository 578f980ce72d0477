import { writeCursor } from "../src/api/cursor.ts";
import { type Corpus, createdAt, openCorpus } from "./corpus.ts";
import { drawIssue, draws, prepareReadyIssues, startCorpusWeb } from "./corpus-web.ts";
import { getRequest } from "./load.ts";
import type { Benchmark } from "./measure.ts";
import { startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

export const PAGE = 100;
/** More than a cache would hold of them by chance, and few enough to be made quickly. */
const PAGES = 4_000;

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
    const ours = pages.map(({ ours }) => getRequest(subject.url, ours, headers));
    const theirs = pages.map(({ theirs }) => getRequest(reference.url, theirs));
    await requireSameBody(subject.url + (pages[0]?.ours ?? ""), headers, reference.url + (pages[0]?.theirs ?? ""));
    return await alternateServers(
      {
        subject: { server: subject, requests: ours, status: 200 },
        reference: { server: reference, requests: theirs, status: 200 },
      },
      { goal: { atLeast: 0.8 } },
    );
  },
};

/** Pages that begin behind a random issue, as both servers are asked for them. */
export function randomPages(corpus: Corpus): { ours: string; theirs: string }[] {
  const draw = draws(1);
  return Array.from({ length: PAGES }, () => {
    const { repository, number } = drawIssue(corpus, draw);
    // None is shorter than the others.
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

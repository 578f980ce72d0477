import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Corpus, openCorpus } from "./corpus.ts";
import { inTurn, startCorpusWeb } from "./corpus-web.ts";
import { askForIssues, firstPages, type IssuePage, issuePages, issueRequest, JSON_TYPE } from "./issue-query.ts";
import { READ_SIZE } from "./list.ts";
import { postRequest } from "./load.ts";
import type { Benchmark, Measured } from "./measure.ts";
import { type ServerProcess, startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

/** As many as the reference can hold as objects. */
const PAGES = 700;
/** Spellings of each query, which differ by white space. They make several times as many answers as are kept. */
const WAYS = 8;
/** More requests than are answered in a slice. */
const AT_ONCE = 700;

export const benchmark: Benchmark = {
  about:
    "gh's own query for 100 issues with labels, assignees, author and milestone, against the same data as prebuilt objects through graphql-js behind node:http: the pages that gh asks for, and any page of 100,000 issues, whose answer is not kept",
  async run() {
    const corpus = await openCorpus(READ_SIZE);
    return [
      await measure(corpus, "first", firstPages(corpus), 1),
      await measure(corpus, "any", issuePages(corpus, PAGES), WAYS),
    ];
  },
};

async function measure(corpus: Corpus, part: string, pages: IssuePage[], ways: number): Promise<Measured> {
  await using resources = new AsyncDisposableStack();
  const { server, headers } = await startCorpusWeb(corpus);
  const subject = resources.use(server);
  const answers: string[] = [];
  for (const page of pages) answers.push(await askForIssues(subject.url, page, headers));
  const folder = await mkdtemp(join(tmpdir(), "tain-bench-"));
  resources.defer(() => rm(folder, { recursive: true }));
  const file = join(folder, "pages.json");
  await writeFile(
    file,
    JSON.stringify(pages.map(({ variables }, at) => ({ variables, answer: JSON.parse(answers[at] as string) }))),
  );
  const reference = resources.use(await startServer("reference/graphql.ts", { PAGES: file }));
  for (const [at, page] of pages.entries())
    if ((await askForIssues(reference.url, page)) !== answers[at])
      throw new Error(`The reference answers otherwise about ${JSON.stringify(page.variables)}`);
  const side = (server: ServerProcess, more = {}) => {
    const requests = Array.from({ length: ways }, (_, way) =>
      pages.map((page) => {
        const body = Buffer.concat([issueRequest(page), Buffer.from(" ".repeat(way))]);
        return postRequest(server.url, "/graphql", body, { ...JSON_TYPE, ...more });
      }),
    );
    return inTurn(server, requests.flat(), AT_ONCE);
  };
  return await alternateServers(
    { subject: side(subject, headers), reference: side(reference) },
    { goal: { atLeast: part === "first" ? 10 : 1 }, part },
  );
}

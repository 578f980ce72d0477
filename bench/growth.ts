import { type Corpus, type CorpusSize, openCorpus } from "./corpus.ts";
import { drawIssue, draws, inTurn, startCorpusWeb } from "./corpus-web.ts";
import { PAGE, READ_SIZE, randomPages } from "./list.ts";
import { getRequest, postRequest } from "./load.ts";
import type { Benchmark, Measured } from "./measure.ts";
import { alternateServers } from "./serving.ts";

/** `TAIN_LARGE=1`: the 5,000,000 issues that the goals are stated for; a larger number: as many. */
const LARGE = process.env.TAIN_LARGE === "1" ? 5_000_000 : Number(process.env.TAIN_LARGE ?? 0);

/** Fifty repositories; one has two issues in five. No comments: none of these reads looks at them. */
const sized = (issues: number): CorpusSize => ({
  issues,
  repositories: 50,
  largest: issues * 0.4,
  commentsPerIssue: 0,
});

/** What is large here, and what it is compared with. */
export const GROWN: CorpusSize = LARGE ? sized(LARGE) : READ_SIZE;
export const SMALL: CorpusSize = LARGE ? sized(LARGE / 100) : { issues: 10_000, repositories: 10 };

const ASKED = 60_000;
/** More requests than are answered in a slice. */
const AT_ONCE = 6_000;
/** As many as match in the smallest repository. */
const FEW = 20;

export const benchmark: Benchmark = {
  about: `reads of ${GROWN.issues.toLocaleString("en")} issues against the same reads of ${SMALL.issues.toLocaleString("en")}`,
  async run() {
    const [grown, small] = [await openCorpus(GROWN), await openCorpus(SMALL)];
    const ours = await startCorpusWeb(grown, COLD);
    await using subject = ours.server;
    const theirs = await startCorpusWeb(small, COLD);
    await using reference = theirs.server;
    const measured: Measured[] = [];
    for (const [part, requestsOf] of Object.entries(PARTS)) {
      measured.push(
        await alternateServers(
          {
            subject: inTurn(subject, requestsOf(grown, subject.url, ours.headers), AT_ONCE),
            reference: inTurn(reference, requestsOf(small, reference.url, theirs.headers), AT_ONCE),
          },
          { goal: { atLeast: 0.8 }, part },
        ),
      );
    }
    return measured;
  },
};

/** What is kept of a page does not depend on the number of pages. */
const COLD = { PAGE_CACHE_BYTES: "0" };

type Requests = (corpus: Corpus, url: string, headers: Record<string, string>) => Uint8Array[];

/** What is asked of a corpus, by kind of read. */
export const PARTS: Record<string, Requests> = {
  list: (corpus, url, headers) => randomPages(corpus).map(({ ours }) => getRequest(url, ours, headers)),
  one: (corpus, url, headers) => {
    const draw = draws(3);
    return Array.from({ length: ASKED }, () => {
      const { repository, number } = drawIssue(corpus, draw);
      return getRequest(url, `/repos/${repository.fullName}/issues/${number}`, headers);
    });
  },
  // A label that one issue in a dozen carries, open and closed ones, newest first and oldest first.
  filtered: (corpus, url, headers) => {
    const [repository] = corpus.repositories;
    return ["bug", "documentation", "enhancement", "question"].flatMap((label) =>
      ["open", "closed"].flatMap((state) =>
        ["asc", "desc"].flatMap((direction) =>
          Array.from({ length: FEW }, (_, at) =>
            getRequest(
              url,
              `/repos/${repository?.fullName}/issues?labels=${label}&state=${state}&direction=${direction}&per_page=${FEW - at}`,
              headers,
            ),
          ),
        ),
      ),
    );
  },
  graphql: (corpus, url, headers) => {
    const draw = draws(4);
    return Array.from({ length: 200 }, () => {
      const { repository } = drawIssue(corpus, draw);
      const [owner, name] = repository.fullName.split("/");
      const body = Buffer.from(JSON.stringify({ query: LISTED, variables: { owner, name, first: PAGE } }));
      return postRequest(url, "/graphql", body, { ...headers, "Content-Type": "application/json" });
    });
  },
};

const LISTED = `query($owner: String!, $name: String!, $first: Int!) { repository(owner: $owner, name: $name) {
  issues(first: $first, states: [OPEN], orderBy: {field: CREATED_AT, direction: DESC}) { totalCount pageInfo { hasNextPage endCursor }
    nodes { number title state url updatedAt author { login } labels(first: 20) { nodes { name color } }
      assignees(first: 10) { nodes { login } } milestone { title } } } } }`;

import { type Corpus, openCorpus } from "./corpus.ts";
import { startCorpusWeb } from "./corpus-web.ts";
import { type BenchDatabase, openBenchDatabase } from "./databases.ts";
import { askForIssues, firstPages, type IssuePage, issuePages, issueRequest, JSON_TYPE } from "./issue-query.ts";
import { READ_SIZE } from "./list.ts";
import { postRequest } from "./load.ts";
import type { Benchmark, Measured } from "./measure.ts";
import { preparePeerTables } from "./peer-tables.ts";
import { installPeers } from "./peers/install.ts";
import { startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

const PAGES = 100;

/** The same question in PostGraphile's words, by the names that it gives to the tables of `peer-tables.ts`. */
const QUERY = `query($name: String!, $first: Int!, $after: Cursor) {
  repositoryByFullName(fullName: $name) {
    hasIssues
    issuesByRepositoryId(first: $first, after: $after, condition: {state: "open"}, orderBy: [CREATED_AT_DESC, NUMBER_DESC]) {
      totalCount
      nodes {
        number title url state updatedAt createdAt
        issueLabelsByRepositoryIdAndNumber(first: 100) { nodes { labelByRepositoryIdAndLabelId { nodeId name description color } } totalCount }
        issueAssigneesByRepositoryIdAndNumber(first: 100) { nodes { userByUserId { nodeId login name } } totalCount }
        userByUserId { login nodeId name }
        milestoneByRepositoryIdAndMilestoneId { number title description dueOn }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
}`;
/** The cursor before a page, as PostGraphile writes it. */
const CURSOR = `query($name: String!, $number: Int!) {
  repositoryByFullName(fullName: $name) {
    issuesByRepositoryId(first: 1, condition: {number: $number}, orderBy: [CREATED_AT_DESC, NUMBER_DESC]) { edges { cursor } }
  }
}`;

export const benchmark: Benchmark = {
  about:
    "gh's own query for 100 issues with labels, assignees, author and milestone, the pages that gh asks for, and any page of 100,000 issues while nothing is kept, against the same question to PostGraphile over equivalent tables",
  async run() {
    await installPeers();
    const corpus = await openCorpus(READ_SIZE);
    await using database = await openBenchDatabase(corpus.database);
    await preparePeerTables(database);
    return [
      await measure({ corpus, database }, "first", firstPages(corpus), {}),
      await measure({ corpus, database }, "any", issuePages(corpus, PAGES), { PAGE_CACHE_BYTES: "0" }),
    ];
  },
};

async function measure(
  { corpus, database }: { corpus: Corpus; database: BenchDatabase },
  part: string,
  pages: IssuePage[],
  settings: Record<string, string>,
): Promise<Measured> {
  const { server, headers } = await startCorpusWeb(corpus, settings);
  await using subject = server;
  await using reference = await startServer("peers/postgraphile.ts", {
    DATABASE_URL: database.url,
    NODE_ENV: "production",
    GRAPHILE_ENV: "production",
  });
  const ours: Uint8Array[] = [];
  const theirs: Uint8Array[] = [];
  for (const page of pages) {
    const variables = await peerVariables(reference.url, page);
    if (!variables) continue;
    const mine = await askForIssues(subject.url, page, headers);
    const yours = await ask(reference.url, QUERY, variables);
    requireSame(JSON.parse(mine).data.repository.issues, yours.repositoryByFullName.issuesByRepositoryId);
    ours.push(postRequest(subject.url, "/graphql", issueRequest(page), { ...JSON_TYPE, ...headers }));
    const body = Buffer.from(JSON.stringify({ query: QUERY, variables }));
    theirs.push(postRequest(reference.url, "/graphql", body, { ...JSON_TYPE, Accept: "application/json" }));
  }
  return await alternateServers(
    {
      subject: { server: subject, status: 200, requests: ours },
      reference: { server: reference, status: 200, requests: theirs },
    },
    { goal: { atLeast: part === "first" ? 40 : 3 }, part },
  );
}

interface PeerAnswer {
  repositoryByFullName: {
    issuesByRepositoryId: {
      edges: { cursor: string }[];
      totalCount: number;
      nodes: { number: number; title: string; issueLabelsByRepositoryIdAndNumber: { totalCount: number } }[];
    };
  };
}

/** @throws Error for an answer with errors */
async function ask(url: string, query: string, variables: object): Promise<PeerAnswer> {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: JSON_TYPE,
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await answer.json()) as { data: PeerAnswer; errors?: unknown };
  if (errors) throw new Error(`PostGraphile answers ${JSON.stringify(errors)}`);
  return data;
}

/** Null: a pull request stands before the page, and the peer's tables have none. */
async function peerVariables(url: string, { before, variables }: IssuePage): Promise<object | null> {
  const name = `${variables.owner}/${variables.repo}`;
  if (before === null) return { name, first: variables.limit };
  const found = await ask(url, CURSOR, { name, number: before });
  const [edge] = found.repositoryByFullName.issuesByRepositoryId.edges;
  return edge ? { name, first: variables.limit, after: edge.cursor } : null;
}

/** @throws Error when the two do not show the same issues */
function requireSame(
  ours: { totalCount: number; nodes: { number: number; title: string; labels: { totalCount: number } }[] },
  theirs: PeerAnswer["repositoryByFullName"]["issuesByRepositoryId"],
): void {
  const mine = ours.nodes.map(({ number, title, labels }) => [number, title, labels.totalCount]);
  const yours = theirs.nodes.map((one) => [one.number, one.title, one.issueLabelsByRepositoryIdAndNumber.totalCount]);
  const [left, right] = [JSON.stringify([ours.totalCount, mine]), JSON.stringify([theirs.totalCount, yours])];
  if (left !== right)
    throw new Error(`PostGraphile answers otherwise: ${right.slice(0, 300)} instead of ${left.slice(0, 300)}`);
}

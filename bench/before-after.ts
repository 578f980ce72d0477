import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type * as CorpusModule from "./corpus.ts";
import type * as CorpusWebModule from "./corpus-web.ts";
import { inTurn } from "./corpus-web.ts";
import type * as IssueQueryModule from "./issue-query.ts";
import { type IssuePage, issueRequest, JSON_TYPE } from "./issue-query.ts";
import type * as ListModule from "./list.ts";
import { PAGE, READ_SIZE } from "./list.ts";
import { getRequest, type Loader, openLoader, postRequest } from "./load.ts";
import { median, ROUNDS, rounded } from "./measure.ts";
import { randomIssues } from "./one.ts";
import type { ServerProcess } from "./processes.ts";
import { SECRET, signedDeliveries } from "./receiving.ts";
import { CONNECTIONS } from "./same-page.ts";
import type { Cost } from "./serving.ts";
import { bestOf, type TurnSide, takeTurns } from "./turns.ts";

/** Turns of each side in a round. */
const TURNS = 40;
/**
 * Fifteen seconds of answers. A web process runs for days, and V8 goes on compiling under load: measured from the first second
 * on, the checkout with more code seemed a tenth dearer than after a minute.
 */
const WARM_UPS = 100;
const HOW = { warmUps: WARM_UPS, turns: TURNS, seconds: 0.15 };
/** More requests than are answered in a slice. */
const AT_ONCE = 6_000;

/** The headers by which a proxy at this machine names the caller. */
const FORWARDED = {
  "X-Forwarded-For": "203.0.113.9",
  "X-Forwarded-Proto": "https",
  "X-Forwarded-Host": "mirror.example",
};

/** The web process of one checkout, as callers meet it. */
interface Subject extends Pages {
  server: ServerProcess;
  headers: Record<string, string>;
}

/** Pages behind the cursors of a checkout, which others may not know. */
type Pages = Pick<typeof ListModule, "randomPages"> & Pick<typeof IssueQueryModule, "issuePages">;

type Corpus = CorpusModule.Corpus;

/** How a web process is asked, by the name of the benchmark that asks the same. */
const questions: Record<string, (subject: Subject, corpus: Corpus) => Promise<TurnSide>> = {
  receive: async ({ server, headers: { Authorization: _, ...headers } }) => ({
    server,
    ...signedDeliveries(server, headers),
    connections: 64,
  }),
  one: async ({ server, headers }, corpus) =>
    inTurn(
      server,
      randomIssues(corpus).map(({ ours }) => getRequest(server.url, ours, headers)),
      AT_ONCE,
    ),
  list: async ({ server, headers, randomPages }, corpus) =>
    inTurn(
      server,
      randomPages(corpus).map(({ ours }) => getRequest(server.url, ours, headers)),
      AT_ONCE / 10,
    ),
  "list-hot": async ({ server, headers }, corpus) => ({
    server,
    requests: [getRequest(server.url, samePage(corpus), headers)],
    status: 200,
    connections: CONNECTIONS,
  }),
  "not-modified": async ({ server, headers }, corpus) => {
    const answer = await fetch(server.url + samePage(corpus), {
      headers: { ...headers, "Accept-Encoding": "identity" },
    });
    await answer.arrayBuffer();
    const known = { ...headers, "If-None-Match": answer.headers.get("etag") ?? "" };
    const requests = [getRequest(server.url, samePage(corpus), known)];
    return { server, requests, status: 304, connections: CONNECTIONS };
  },
  "graphql/any": async ({ server, headers, issuePages }, corpus) => {
    const asked = (page: IssuePage, way: number) => Buffer.concat([issueRequest(page), Buffer.from(" ".repeat(way))]);
    const pages = issuePages(corpus, 700);
    const requests = Array.from({ length: 8 }, (_, way) =>
      pages.map((page) => postRequest(server.url, "/graphql", asked(page, way), { ...JSON_TYPE, ...headers })),
    );
    return inTurn(server, requests.flat(), AT_ONCE / 10);
  },
};

function samePage({ repositories }: Corpus): string {
  return `/repos/${repositories[0]?.fullName}/issues?state=all&per_page=${PAGE}`;
}

/** A checkout, and the corpus that its own code has filled. */
interface Checkout {
  corpus: Corpus;
  /** Its web processes: one that is asked directly, and one that trusts the proxy. */
  start(resources: AsyncDisposableStack): Promise<{ direct: Subject; proxied: Subject }>;
}

/**
 * Measures the web process of this checkout against that of another, each over a corpus that its own code has filled:
 * asked directly, and as a trusted proxy asks. All four take turns, and each round has four new ones: two processes of
 * one program differ by up to a fifth for as long as they run. Prints a line for each question.
 */
export async function compareCheckouts(before: string, only: readonly string[]): Promise<void> {
  await using loader = openLoader();
  const after = new URL("..", import.meta.url).pathname;
  const checkouts = [await openCheckout(before), await openCheckout(after)] as const;
  for (const [name, question] of Object.entries(questions)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const rounds: Cost[][] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measureRound(loader, checkouts, question));
    console.log(JSON.stringify({ name, ...figures(rounds) }));
  }
}

/** What an answer of each side costs: before and after directly, before and after through the proxy. */
async function measureRound(
  loader: Loader,
  [before, after]: readonly [Checkout, Checkout],
  question: (subject: Subject, corpus: Corpus) => Promise<TurnSide>,
): Promise<Cost[]> {
  await using resources = new AsyncDisposableStack();
  const [was, is] = [await before.start(resources), await after.start(resources)];
  const sides = await Promise.all([
    question(was.direct, before.corpus),
    question(is.direct, after.corpus),
    question(was.proxied, before.corpus),
    question(is.proxied, after.corpus),
  ]);
  return (await takeTurns(loader, sides, HOW)).map(bestOf);
}

async function openCheckout(folder: string): Promise<Checkout> {
  const at = (file: string) => pathToFileURL(resolve(folder, "bench", file)).href;
  const { openCorpus } = (await import(at("corpus.ts"))) as typeof CorpusModule;
  const { startCorpusWeb } = (await import(at("corpus-web.ts"))) as typeof CorpusWebModule;
  const { randomPages } = (await import(at("list.ts"))) as typeof ListModule;
  const { issuePages } = (await import(at("issue-query.ts"))) as typeof IssueQueryModule;
  const pages: Pages = { randomPages, issuePages };
  const corpus = await openCorpus(READ_SIZE);
  // The checkouts' own may differ, and deliveries are signed here.
  const env = { WEBHOOK_SECRET: SECRET };
  return {
    corpus,
    async start(resources) {
      const direct = await startCorpusWeb(corpus, env);
      resources.use(direct.server);
      const proxied = await startCorpusWeb(corpus, { ...env, TRUSTED_PROXIES: "loopback" });
      resources.use(proxied.server);
      return {
        direct: { ...direct, ...pages },
        proxied: { ...proxied, ...pages, headers: { ...proxied.headers, ...FORWARDED } },
      };
    },
  };
}

/** Which sides of a round are compared, the one that is to be quicker first. */
const COMPARED = {
  direct: [1, 0],
  proxied: [3, 2],
  proxiedToDirect: [3, 1],
} as const;

/** Medians over all rounds, and what the rounds' own ratios were. Ratios above one: the first of the two is quicker. */
function figures(rounds: readonly Cost[][]): Record<string, unknown> {
  const all = (at: number, cost: keyof Cost) => rounds.map((sides) => sides[at]?.[cost] ?? Number.NaN);
  const compared = Object.entries(COMPARED).flatMap(([name, [one, other]]) => {
    const others = { perSecond: all(other, "perSecond"), cpuMicros: all(other, "cpuMicros") };
    const quicker = all(one, "perSecond").map((figure, round) => figure / (others.perSecond[round] ?? Number.NaN));
    const cheaper = all(one, "cpuMicros").map((figure, round) => (others.cpuMicros[round] ?? Number.NaN) / figure);
    return [
      [name, summary(quicker)],
      [`${name}Cpu`, summary(cheaper)],
    ] as const;
  });
  const medians = (cost: keyof Cost) => [0, 1, 2, 3].map((at) => Math.round(median(all(at, cost))));
  return { ...Object.fromEntries(compared), perSecond: medians("perSecond"), cpuMicros: medians("cpuMicros") };
}

function summary(ratios: readonly number[]) {
  return { median: rounded(median(ratios)), rounds: ratios.map(rounded) };
}

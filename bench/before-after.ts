import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type * as CorpusModule from "./corpus.ts";
import type * as CorpusWebModule from "./corpus-web.ts";
import { inTurn } from "./corpus-web.ts";
import type * as IssueQueryModule from "./issue-query.ts";
import { type IssuePage, issueRequest, JSON_TYPE } from "./issue-query.ts";
import type * as ListModule from "./list.ts";
import { PAGE, READ_SIZE } from "./list.ts";
import { getRequest, openLoader, postRequest } from "./load.ts";
import { ROUNDS } from "./measure.ts";
import { randomIssues } from "./one.ts";
import type { ServerProcess } from "./processes.ts";
import { SECRET, signedDeliveries } from "./receiving.ts";
import { CONNECTIONS } from "./same-page.ts";
import type { Cost } from "./serving.ts";
import { bestOf, type TurnSide, takeTurns } from "./turns.ts";

/** Of each side, in a round. */
const TURNS = 10;
/**
 * Fifteen seconds of answers. A web process runs for days, and V8 goes on compiling under load: measured from the first second
 * on, the checkout with more code seemed a tenth dearer than after a minute.
 */
const WARM_UPS = 100;
const HOW = { warmUps: WARM_UPS, turns: ROUNDS * TURNS, seconds: 0.15 };
/** More than are answered in a slice. */
const AT_ONCE = 6_000;

/** What a proxy at this machine says of the caller. */
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

/**
 * Measures the web process of this checkout against that of another, each over a corpus that its own code has filled:
 * asked directly, and as a trusted proxy asks. All four take turns. Prints a line for each question.
 */
export async function compareCheckouts(before: string, only: readonly string[]): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const loader = resources.use(openLoader());
  const after = new URL("..", import.meta.url).pathname;
  const [was, is] = [await openCheckout(before, resources), await openCheckout(after, resources)];
  for (const [name, question] of Object.entries(questions)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const sides = await Promise.all([
      question(was.direct, was.corpus),
      question(is.direct, is.corpus),
      question(was.proxied, was.corpus),
      question(is.proxied, is.corpus),
    ]);
    console.log(JSON.stringify({ name, ...figures(await takeTurns(loader, sides, HOW)) }));
  }
}

async function openCheckout(folder: string, resources: AsyncDisposableStack) {
  const at = (file: string) => pathToFileURL(resolve(folder, "bench", file)).href;
  const { openCorpus } = (await import(at("corpus.ts"))) as typeof CorpusModule;
  const { startCorpusWeb } = (await import(at("corpus-web.ts"))) as typeof CorpusWebModule;
  const { randomPages } = (await import(at("list.ts"))) as typeof ListModule;
  const { issuePages } = (await import(at("issue-query.ts"))) as typeof IssueQueryModule;
  const pages: Pages = { randomPages, issuePages };
  const corpus = await openCorpus(READ_SIZE);
  // The checkouts' own may differ, and deliveries are signed here.
  const env = { WEBHOOK_SECRET: SECRET };
  const direct = await startCorpusWeb(corpus, env);
  resources.use(direct.server);
  const proxied = await startCorpusWeb(corpus, { ...env, TRUSTED_PROXIES: "loopback" });
  resources.use(proxied.server);
  return {
    corpus,
    direct: { ...direct, ...pages },
    proxied: { ...proxied, ...pages, headers: { ...proxied.headers, ...FORWARDED } },
  };
}

/** Ratios above one: this checkout is quicker, or a proxy makes it so. */
function figures(costs: readonly Cost[][]): Record<string, unknown> {
  const best = costs.map(bestOf);
  const [perSecond, cpuMicros] = [best.map((one) => one.perSecond), best.map((one) => one.cpuMicros)];
  const ratio = (over: number | undefined, under: number | undefined) =>
    Number(((over ?? Number.NaN) / (under ?? Number.NaN)).toFixed(3));
  return {
    direct: ratio(perSecond[1], perSecond[0]),
    directCpu: ratio(cpuMicros[0], cpuMicros[1]),
    proxied: ratio(perSecond[3], perSecond[2]),
    proxiedCpu: ratio(cpuMicros[2], cpuMicros[3]),
    proxiedToDirect: ratio(perSecond[3], perSecond[1]),
    proxiedToDirectCpu: ratio(cpuMicros[1], cpuMicros[3]),
    perSecond: perSecond.map(Math.round),
    cpuMicros: cpuMicros.map(Math.round),
  };
}

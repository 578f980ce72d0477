import { openDatabase } from "../db/database.ts";
import { sql } from "../db/sql.ts";
import { createApiToken } from "../src/api/callers/tokens.ts";
import { renderDocuments } from "../src/mirror/render/rendering.ts";
import { SharedRows } from "../src/mirror/render/shared-rows.ts";
import type { Corpus, CorpusRepository } from "./corpus.ts";
import { benchRedis } from "./databases.ts";
import { getRequest } from "./load.ts";
import { type ServerProcess, startServer } from "./processes.ts";
import type { Side } from "./serving.ts";

/** Upstream as a corpus has it: nothing is asked of it. */
const UPSTREAM = "http://127.0.0.1:9";

/** A web process over a corpus, and the headers of a caller that it knows and does not limit. */
export async function startCorpusWeb(
  corpus: Corpus,
  settings: Record<string, string> = {},
  flags: readonly string[] = [],
): Promise<{ server: ServerProcess; headers: Record<string, string> }> {
  const db = openDatabase(corpus.database.url, { maxConnections: 1, applicationName: "bench token" });
  const token = await createApiToken(
    { db, clock: { now: () => new Date() } },
    { userId: corpus.userId, canWrite: true, hourlyLimit: 1_000_000_000 },
  ).finally(() => db.close());
  const redis = benchRedis();
  const env = {
    DATABASE_URL: corpus.database.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: UPSTREAM,
    UPSTREAM_TOKEN: "bench-token",
    WEBHOOK_SECRET: "bench-webhook-secret",
    PUBLIC_URL: PUBLIC_ADDRESS,
    LOG_LEVEL: "fatal",
    HOST: "127.0.0.1",
    PORT: "0",
    ...settings,
  };
  const server = await startServer("web-server.ts", env, flags);
  return { server, headers: { Authorization: `Bearer ${token}`, Accept: "application/vnd.github+json" } };
}

/** Stands in all bodies, so that those of two servers are the same. */
const PUBLIC_ADDRESS = "https://mirror.example";

const BATCH = 500;
const prepared = new WeakMap<Corpus, Promise<void>>();

/**
 * Fills the table `ready_issues` beside the mirror's: each issue as the JSON text that the mirror serves of it.
 * It is the quickest store there can be of issues that are only read. Done once per corpus.
 */
export function prepareReadyIssues(corpus: Corpus): Promise<void> {
  const known = prepared.get(corpus) ?? fillReadyIssues(corpus);
  prepared.set(corpus, known);
  return known;
}

async function fillReadyIssues(corpus: Corpus): Promise<void> {
  const db = openDatabase(corpus.database.url, { maxConnections: 2, applicationName: "bench ready texts" });
  try {
    await db.query(sql`
      create table ready_issues (repository_id bigint, number integer, json text not null, primary key (repository_id, number))`);
    const fill = async ({ id, issues }: CorpusRepository) => {
      for (let from = 1; from <= issues; from += BATCH) {
        const rows = await db.query<{ number: number; document: string; body: string | null }>(sql`
          select number, document::text as document, body from issues
            where repository_id = ${id} and number between ${from} and ${from + BATCH - 1}`);
        const documents = rows.map(({ document, body }) => ({ repositoryId: id, document, body }));
        const texts = await renderDocuments(new SharedRows(db), documents, { api: PUBLIC_ADDRESS });
        const ready = JSON.stringify(rows.map(({ number }, at) => ({ n: number, json: texts[at] })));
        await db.query(sql`
          insert into ready_issues select ${id}, n, json from json_to_recordset(${ready}) as x(n integer, json text)`);
      }
    };
    for (const repository of corpus.repositories) await fill(repository);
    await db.query(sql`vacuum analyze ready_issues`);
  } finally {
    await db.close();
  }
}

/** Numbers in [0, 1) that are the same in every run. */
export function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Somewhere in the corpus: each issue is as likely as any other. */
export function drawIssue(
  { repositories }: Corpus,
  draw: () => number,
): { repository: CorpusRepository; number: number } {
  let at = Math.floor(draw() * repositories.reduce((sum, { issues }) => sum + issues, 0));
  for (const repository of repositories) {
    if (at < repository.issues) return { repository, number: at + 1 };
    at -= repository.issues;
  }
  throw new Error("The corpus is empty");
}

/**
 * Requests to a server, at most `count` at a time. Each slice begins with the first one that was not asked yet, until
 * all have had their turn: repeated requests would measure what is remembered of them.
 */
export function inTurn(server: ServerProcess, requests: readonly Uint8Array[], count: number): Side {
  let next = 0;
  return {
    server,
    status: 200,
    get requests() {
      const some = requests.slice(next, next + count);
      return [...some, ...requests.slice(0, count - some.length)];
    },
    asked: (answers) => {
      next = (next + answers) % requests.length;
    },
  };
}

/** The same question, as each of two servers is asked it. */
export interface Question {
  ours: string;
  theirs: string;
}

/** Both servers with their questions; see `inTurn`. */
export function sidesOf(
  questions: readonly Question[],
  {
    subject,
    reference,
    headers,
    theirHeaders,
  }: {
    subject: ServerProcess;
    reference: ServerProcess;
    headers: Record<string, string>;
    theirHeaders?: Record<string, string>;
  },
  count: number,
): { subject: Side; reference: Side } {
  const [ours, theirs] = [
    questions.map((one) => getRequest(subject.url, one.ours, headers)),
    questions.map((one) => getRequest(reference.url, one.theirs, theirHeaders)),
  ];
  return { subject: inTurn(subject, ours, count), reference: inTurn(reference, theirs, count) };
}

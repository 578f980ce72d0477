import { createHmac } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { openDatabase } from "../db/database.ts";
import { sql } from "../db/sql.ts";
import { createApiToken } from "../src/api/callers/tokens.ts";
import { parseConfig } from "../src/config.ts";
import { type Context, openContext } from "../src/context.ts";
import { enqueueAudits, enqueueCatchUp, enqueueTask } from "../src/queues/queues.ts";
import { type Corpus, type CorpusSize, openCorpus } from "./corpus.ts";
import { drawIssue, draws } from "./corpus-web.ts";
import { type BenchDatabase, benchRedis, openBenchDatabase } from "./databases.ts";
import { GROWN, PARTS, SMALL } from "./growth.ts";
import { type Load, openLoader, postRequest } from "./load.ts";
import { type Benchmark, comparison, ROUNDS } from "./measure.ts";
import { residentBytesOf, startProgram, startServer } from "./processes.ts";

const SECONDS = process.env.TAIN_LARGE ? 60 : 8;
/** Reads and deliveries in a second: what two processes on a small machine bear beside the worker's own reads. */
const READS = 150;
const DELIVERIES = 40;
const CONNECTIONS = 16;
/** Issues that the deliveries are about. */
const CHANGED = 200;
const SECRET = "bench-webhook-secret";
const NUMBER = "000000000000";
const WORK_EVERY_MS = 500;

export const benchmark: Benchmark = {
  about: `peak memory of a web process (reads, deliveries) and of a worker process (deliveries, audits, catch-ups, sweeps) with ${GROWN.issues.toLocaleString("en")} issues, against ${SMALL.issues.toLocaleString("en")}`,
  async run() {
    await using grown = await openCopy(GROWN);
    await using small = await openCopy(SMALL);
    const pairs = { web: [] as [number, number][], worker: [] as [number, number][] };
    let done: Done = { reads: 0, deliveries: 0, auditedPages: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const ours = await peakUnderLoad(grown);
      const theirs = await peakUnderLoad(small);
      done = ours.done;
      for (const name of ["web", "worker"] as const) pairs[name].push([ours[name], theirs[name]]);
    }
    return Object.entries(pairs).map(([part, figures]) => ({
      ...comparison(figures, { unit: "MiB", goal: { atMost: 1.2 }, part }),
      notes: { ...done },
    }));
  },
};

/**
 * As a first copy leaves repositories. The corpus' pull requests cannot be listed, which an audit would take for
 * their deletion: an audit that comes to them begins again.
 */
const PREPARE = `
  update repository_syncs set issues_synced_at = now(), comments_synced_at = now(), pulls_synced_at = now(), review_comments_synced_at = now();
  delete from pull_requests;
  create function forget_audit() returns trigger language plpgsql as $$
    begin delete from audits where repository_id = old.repository_id; return null; end $$;
  create trigger forget_audit before update on audits for each row when (new.phase = 'pulls') execute function forget_audit()`;

/** A corpus that may be written to. */
interface Copy extends AsyncDisposable {
  corpus: Corpus;
  database: BenchDatabase;
}

/** What was done by the end of a round. */
interface Done {
  reads: number;
  deliveries: number;
  /** Different pages since the first round. */
  auditedPages: number;
}

async function openCopy(size: CorpusSize): Promise<Copy> {
  const corpus = await openCorpus(size);
  const database = await openBenchDatabase(corpus.database);
  const db = openDatabase(database.url, { maxConnections: 1, applicationName: "bench watermarks" });
  await db.query(sql.script(PREPARE)).finally(() => db.close());
  return { corpus, database, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

/**
 * The peaks, in MiB, of processes that are started for it. The web process is the worker's upstream, too: so the
 * worker has an upstream as large as the mirror, which serves the same database.
 */
async function peakUnderLoad({ corpus, database }: Copy): Promise<{ web: number; worker: number; done: Done }> {
  await using resources = new AsyncDisposableStack();
  const redis = benchRedis();
  const settings = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    WEBHOOK_SECRET: SECRET,
    LOG_LEVEL: "fatal",
    HOST: "127.0.0.1",
    PORT: "0",
  };
  const web = resources.use(
    // No upstream listens there, as this web process needs none.
    await startServer("web-server.ts", { ...settings, UPSTREAM_URL: "http://127.0.0.1:9", UPSTREAM_TOKEN: "nobody" }),
  );
  const opened = { ...settings, UPSTREAM_URL: web.url, UPSTREAM_TOKEN: "none-yet" };
  const before = await openContext(parseConfig(opened), resources, { name: "bench token" });
  const token = await createApiToken(before, { userId: corpus.userId, canWrite: true, hourlyLimit: 1_000_000_000 });
  const env = { ...opened, UPSTREAM_TOKEN: token };
  const ctx = await openContext(parseConfig(env), resources, { name: "bench memory" });
  const headers = { Authorization: `Bearer ${token}`, Accept: "application/vnd.github+json" };
  const deliveries = await deliveriesTo(web.url, corpus, headers);
  const worker = resources.use(startProgram("../workers/main.ts", env));

  while ((await ctx.queues.deliveries.getWorkers()).length === 0) await delay(100);
  const over = AbortSignal.timeout(SECONDS * 1_000);
  const reader = resources.use(openLoader());
  const sender = resources.use(openLoader());
  const asked = { url: web.url, connections: CONNECTIONS, seconds: SECONDS };
  const [reads, sent] = await Promise.all([
    reader.load({ ...asked, requests: mixedReads(web.url, corpus, headers), status: 200, perSecond: READS }),
    sender.load({ ...asked, ...deliveries, status: 202, perSecond: DELIVERIES }),
    giveWork(ctx, corpus, over),
  ]);
  const rows = await ctx.db.query<{ pages: number }>(sql`select count(*)::int as pages from audit_pages`);
  const mebibytes = async (pid: number) => (await residentBytesOf(pid)).peak / 2 ** 20;
  return {
    web: await mebibytes(web.pid),
    worker: await mebibytes(worker.pid),
    done: { reads: reads.answers, deliveries: sent.answers, auditedPages: rows[0]?.pages ?? 0 },
  };
}

/** Reads of all kinds, in turn. */
function mixedReads(url: string, corpus: Corpus, headers: Record<string, string>): Uint8Array[] {
  const kinds = Object.values(PARTS).map((requestsOf) => requestsOf(corpus, url, headers));
  return Array.from({ length: READS * SECONDS }, (_, at) => {
    const some = kinds[at % kinds.length] as Uint8Array[];
    return some[Math.floor(at / kinds.length) % some.length] as Uint8Array;
  });
}

/** Deliveries that give issues anywhere in the corpus, no pull requests, another title. */
async function deliveriesTo(
  url: string,
  corpus: Corpus,
  headers: Record<string, string>,
): Promise<Pick<Load, "requests" | "numberAt">> {
  const read = async (path: string) => {
    const answer = await fetch(url + path, { headers: { ...headers, "User-Agent": "bench" } });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  const draw = draws(5);
  const updated_at = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const requests: Uint8Array[] = [];
  const repositories = new Map<string, Record<string, unknown>>();
  for (let one = 0; one < CHANGED; one++) {
    const { repository, number } = drawIssue(corpus, draw);
    const whole = repositories.get(repository.fullName) ?? (await read(`/repos/${repository.fullName}`));
    repositories.set(repository.fullName, whole);
    const issue = await read(`/repos/${repository.fullName}/issues/${number}`);
    if ("pull_request" in issue) continue;
    const payload = {
      action: "edited",
      issue: { ...issue, title: `${issue.title} (${one})`, updated_at },
      repository: whole,
      sender: whole.owner,
    };
    const body = Buffer.from(JSON.stringify(payload));
    requests.push(
      postRequest(url, "/webhooks", body, {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": `5f3a9c01-0000-4000-8000-${NUMBER}`,
        "X-GitHub-Hook-ID": String(Date.now()),
        "X-Hub-Signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
      }),
    );
  }
  return { requests, numberAt: NUMBER };
}

/** What the scheduler asks for now and then, here without a pause. */
async function giveWork(ctx: Context, { repositories }: Corpus, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await enqueueTask(ctx, "sweep");
    for (const { id: repositoryId } of repositories) {
      await enqueueAudits(ctx, [repositoryId]);
      await enqueueCatchUp(ctx, { repositoryId }, { atOnce: true });
    }
    await delay(WORK_EVERY_MS);
  }
}

import { parseArgs } from "node:util";
import { openDatabase } from "../db/database.ts";
import { openOutput } from "../src/cli/terminal/output.ts";
import { sentenceOf } from "../src/cli/terminal/sentence.ts";
import { beginOrGoOn, type Databases, migrateFirst } from "../src/cli/up/begin.ts";
import type { Tending } from "../src/cli/up/keeper.ts";
import { localAddress, untilReady } from "../src/cli/up/ready.ts";
import { tend, tendAgain } from "../src/cli/up/tend.ts";
import { type Config, parseConfig } from "../src/config.ts";
import { openContext, openLocal } from "../src/context.ts";
import { isMistake, reasonOf } from "../src/failure.ts";
import { ActivityWriter } from "../src/operations/activity-table.ts";
import { runProcess } from "../src/operations/entry.ts";
import { type LineSink, openLog, standardStream } from "../src/operations/log.ts";
import { Metrics } from "../src/operations/metrics.ts";
import { guardSchema } from "../src/operations/schema-guard.ts";
import { aborted, openShutdown, REFUSED_STATUS, type Shutdown } from "../src/operations/shutdown.ts";
import { within } from "../src/waits/within.ts";

/** How long tending may take to end after a request to stop: upstream may leave a question unanswered. */
const FINISH_MS = 2_000;

/** Tending asks little, and one thing after the other. */
const OWNERS_CONNECTIONS = 2;

/** The share of SHUTDOWN_TIMEOUT that jobs have to end. Then requests under way have the rest, whatever jobs do. */
const JOBS_SHARE = 0.7;

interface Starting {
  config: Config;
  shutdown: Shutdown;
  tending: Tending;
  logTo: LineSink;
}

if (import.meta.main) await runProcess(runOne);

/**
 * Web, worker and scheduler in one process, as `tain up` starts it with PROCESSES=one. It also migrates the database and
 * tends the instance. Web and worker have connections of their own, each with the rights of its role; what tends the
 * instance has the owner's.
 */
async function runOne(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: "boolean" }, demonstrate: { type: "string" } } });
  const config = parseConfig(process.env);
  const output = openOutput({ json: values.json === true }, process);
  // Standard output is for what `tain up` tells a person.
  const logTo = standardStream(2);
  const log = openLog(config, { name: "instance" }, logTo);
  const shutdown = openShutdown({ log, timeoutMs: config.shutdownMs });
  const [url, [token = ""], repositories] = [config.upstreamUrl, config.upstreamTokens, values.demonstrate?.split(",")];
  const demonstration = repositories ? { url, token, repositories } : null;
  shutdown.signal.addEventListener("abort", () => {
    // Nobody else says why it must not go on.
    if (process.exitCode === REFUSED_STATUS) output.note(`tain: ${reasonOf(shutdown.signal.reason)}`);
  });
  const tending = { output, signal: shutdown.signal, apiUrl: localAddress(config), demonstration };
  try {
    // Otherwise an unanswered request to upstream would keep the process alive until its time-out.
    if ((await serveAll({ config, shutdown, tending, logTo })) === "late") process.exit(process.exitCode ?? 0);
  } catch (error) {
    // An error that only follows from the stop is not reported.
    if (shutdown.signal.aborted) return;
    if (isMistake(error)) throw error;
    output.note(`tain: ${sentenceOf(error, process.env)}`);
    if (process.env.TAIN_DEBUG) console.error(error);
    process.exitCode = REFUSED_STATUS;
  }
}

/** Serves until it is to stop. Late: tending has not ended by then. */
async function serveAll({ config, shutdown, tending, logTo }: Starting): Promise<"ended" | "late"> {
  const { output, signal, apiUrl } = tending;
  await using resources = new AsyncDisposableStack();
  const begun = begunBefore();
  const databases = begun ?? (await begin({ config, tending, logTo }));
  signal.throwIfAborted();
  const metrics = new Metrics();
  const open = (name: keyof Databases, closing: AsyncDisposableStack) =>
    openContext({ ...config, databaseUrl: databases[name] }, closing, {
      ...{ name, logTo, metrics },
      ...{ isTraced: true, isCentral: true },
    });

  // Each part is loaded when it begins, so that the API does not wait for the workers. It opens its connections after
  // that: loading holds the event loop, and on a busy machine an answer of a store would come too late.
  const { serveWeb } = await import("../src/web.ts");
  const web = await open("web", resources);
  await guardSchema(web, shutdown, resources);
  metrics.observeProcess();
  // All parts count together.
  resources.use(new ActivityWriter(web)).begin();
  await serveWeb(web, resources);
  if (!begun) {
    await untilReady(web, { apiUrl, operatorToken: config.operatorToken, signal });
    output.document({ event: "serving", apiUrl });
  }

  const [{ startWorkers }, { schedule }] = await Promise.all([import("./main.ts"), import("./scheduler.ts")]);
  const ofWorker = new AsyncDisposableStack();
  resources.defer(() =>
    within(config.shutdownMs * JOBS_SHARE, ofWorker.disposeAsync(), () => web.log.error("Jobs do not end in time")),
  );
  const worker = await open("worker", ofWorker);
  await startWorkers(worker, signal, ofWorker);
  // Only the owner of the database may read and make tokens.
  const owner = openDatabase(config.databaseUrl, {
    ...{ applicationName: "tain up", maxConnections: OWNERS_CONNECTIONS, clock: worker.clock },
    isPooled: config.databaseDirectUrl !== null,
  });
  ofWorker.defer(() => owner.close());
  const tended = { ...worker, db: owner };
  const working = Promise.all([schedule(worker, signal), begun ? tendAgain(tended, tending) : tend(tended, tending)]);
  working.catch((error: unknown) => {
    if (signal.aborted) return;
    // The process ends as after any other mistake, and is started again.
    if (isMistake(error)) throw error;
    shutdown.refuse(new Error(sentenceOf(error, process.env), { cause: error }));
  });
  await aborted(signal);
  const ended = Promise.allSettled([working]).then(() => "ended" as const);
  return await within(FINISH_MS, ended, () => "late" as const);
}

/** The databases of an instance whose first process has ended: its parent was told of them. */
function begunBefore(): Databases | null {
  const { TAIN_WEB_DATABASE: web, TAIN_WORKER_DATABASE: worker } = process.env;
  return web && worker ? { web, worker } : null;
}

/** What is done once for an instance, before anything works on its database. */
async function begin({ config, tending, logTo }: Omit<Starting, "shutdown">): Promise<Databases> {
  const { output, demonstration } = tending;
  await migrateFirst(process.env, output);
  await using resources = new AsyncDisposableStack();
  const ctx = await openLocal(config, resources, { name: "up", logTo });
  const isEmbedded = process.env.TAIN_POSTGRES === "embedded";
  const databases = await beginOrGoOn(ctx, output, { isDemonstration: demonstration !== null, isEmbedded });
  process.send?.({ TAIN_WEB_DATABASE: databases.web, TAIN_WORKER_DATABASE: databases.worker });
  return databases;
}

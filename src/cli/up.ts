import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { migrate, SchemaTooNewError } from "../../db/migrate.ts";
import { type Config, parseConfig } from "../config.ts";
import { type Context, openContext } from "../context.ts";
import { closeQueues, openQueues } from "../operations/queues.ts";
import { claimOrigin, SIMULATOR } from "../sync/origin.ts";
import { type Command, CommandError, type Given } from "./command.ts";
import { type Demonstration, enliven, startDemonstration } from "./demonstration.ts";
import { newSecret, readInstance } from "./instance.ts";
import type { Output } from "./output.ts";
import { ProcessTree } from "./process-tree.ts";
import { tend } from "./tend.ts";

export const up: Command = {
  name: "up",
  summary: "run everything: API, receiver, workers, scheduler (what `npm start` does)",
  about: `
Runs the API with the webhook receiver, the workers and the scheduler, each as a process
of its own, and mirrors what REPOSITORIES and \`tain add\` name at UPSTREAM_URL.

Without UPSTREAM_URL it demonstrates itself: a simulated upstream, with a few thousand
issues and pull requests and about one change a second, is mirrored instead. Its world, and
the mirror of it, begin anew at each start.

Needs DATABASE_URL and REDIS_URL (\`npm start\` brings both) and writes what other programs
need to know to TAIN_HOME/instance.json. The processes log warnings and worse, unless
LOG_LEVEL says otherwise. SIGTERM or Ctrl-C stops everything in good order.`,
  run: runUp,
};

/** Shares of SHUTDOWN_TIMEOUT; together they are all of it. */
const stopShares = { scheduler: 0.1, worker: 0.6, web: 0.2, simulator: 0.1 };
const WEB_PATIENCE_MS = 30_000;

async function runUp({ env }: Given, output: Output): Promise<number> {
  const isDemonstration = wantsDemonstration(env);
  const stopping = new AbortController();
  let stopCode = 0;
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stopping.abort(name));
  // Whoever started us with a channel and is gone cannot stop us any more.
  if (process.connected) process.on("disconnect", () => stopping.abort("the parent process has gone"));

  const settings = await settle(env, isDemonstration);
  const tree = new ProcessTree((line) => output.note(`tain: ${line}`));
  void tree.failed.then((reason) => {
    if (stopping.signal.aborted) return;
    output.note(`tain: ${reason}`);
    stopCode = 1;
    stopping.abort(reason);
  });
  try {
    await serve(settings, { isDemonstration, tree, output, signal: stopping.signal });
  } catch (error) {
    // What fails because we are stopping, or because a process has ended, is not the news.
    if (!stopping.signal.aborted) throw error;
    if (env.TAIN_DEBUG) output.note(String((error as Error).stack));
  } finally {
    if (stopping.signal.aborted) output.line("Stopping …");
    const killed = await tree.stop();
    if (killed.length > 0) {
      output.note(`tain: not finished in time, and so ended by force: ${killed.join(", ")} (SHUTDOWN_TIMEOUT says how long they have)`);
      stopCode = 1;
    }
  }
  return stopCode;
}

/** @throws CommandError where the environment says neither demonstration nor upstream clearly */
function wantsDemonstration(env: NodeJS.ProcessEnv): boolean {
  if (env.UPSTREAM_URL) return false;
  if (env.NODE_ENV === "production") {
    throw new CommandError("With NODE_ENV=production there is no demonstration: set DATABASE_URL, REDIS_URL, UPSTREAM_URL and UPSTREAM_TOKEN");
  }
  if (env.UPSTREAM_TOKEN) {
    throw new CommandError("UPSTREAM_TOKEN is set and UPSTREAM_URL is not: set it to https://api.github.com (or https://HOST/api/v3), or unset the token for the demonstration");
  }
  return true;
}

/** The environment that every process gets, short of the demonstration's upstream: valid, and with a port and a secret. */
async function settle(env: NodeJS.ProcessEnv, isDemonstration: boolean): Promise<NodeJS.ProcessEnv> {
  const before = await readInstance({ home: env.TAIN_HOME?.trim() || ".tain" });
  const secret = env.WEBHOOK_SECRET || before?.webhookSecret || newSecret();
  const settled = { ...env, WEBHOOK_SECRET: secret, LOG_LEVEL: env.LOG_LEVEL || "warn" };
  // What only the simulator can say later stands in for a moment, so that every other problem is told now.
  const config = parseConfig(isDemonstration ? { ...settled, UPSTREAM_URL: "http://127.0.0.1:1", UPSTREAM_TOKEN: "later" } : settled);
  return { ...settled, PORT: String(await freePort(config)), TAIN_HOME: config.home };
}

/** The port of the settings, if it is free; any free one for 0. */
async function freePort({ host, port }: Pick<Config, "host" | "port">): Promise<number> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), "listening");
    const address = probe.address();
    return typeof address === "object" && address ? address.port : port;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") throw new CommandError(`Port ${port} is taken by another program: set PORT to a free one (e.g. PORT=${port + 1}), or end that program`);
    if (code === "EACCES") throw new CommandError(`This user may not listen on port ${port}: set PORT to one above 1023`);
    throw new CommandError(`It is not possible to listen on ${host}, port ${port} (${(error as Error).message}): set HOST to an address of this machine`);
  } finally {
    probe.close();
  }
}

interface Serving {
  isDemonstration: boolean;
  tree: ProcessTree;
  output: Output;
  signal: AbortSignal;
}

/** From nothing to a mirror that is tended, until the signal aborts. */
async function serve(settings: NodeJS.ProcessEnv, { isDemonstration, tree, output, signal }: Serving): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const shutdownMs = parseConfig({ ...settings, UPSTREAM_URL: settings.UPSTREAM_URL || "http://127.0.0.1:1", UPSTREAM_TOKEN: settings.UPSTREAM_TOKEN || "later" }).shutdownMs;
  const stopWithin = (name: keyof typeof stopShares) => ({ stopWithinMs: Math.round(shutdownMs * stopShares[name]) });

  const demonstrating = isDemonstration ? startDemonstration(tree, stopWithin("simulator")) : null;
  demonstrating?.catch(() => {}); // Told where it is awaited.
  await migrateTo(settings.DATABASE_URL ?? "");
  const demonstration: Demonstration | null = await demonstrating;
  const env = demonstration ? { ...settings, UPSTREAM_URL: demonstration.url, UPSTREAM_TOKEN: demonstration.token } : settings;
  const config = parseConfig(env);
  // Log lines would stand among the documents.
  const ctx = await openContext(output.json ? { ...config, logLevel: "silent" } : config, resources, { name: "up" });
  await beginOrGoOn(ctx, output, isDemonstration);
  signal.throwIfAborted();

  const start = (name: "web" | "worker" | "scheduler", entry: string) => {
    const { stopWithinMs } = stopWithin(name);
    // It gives up by itself a moment before it would be killed, and says so.
    const limit = `${Math.max(100, stopWithinMs - 200)}ms`;
    tree.start({ name, entry: new URL(entry, import.meta.url), env: { ...env, SHUTDOWN_TIMEOUT: limit }, stopWithinMs });
  };
  start("web", "../web.ts");
  await answersReady(config, signal);
  output.document({ event: "serving", apiUrl: localAddress(config) });
  start("worker", "../../workers/main.ts");
  start("scheduler", "../../workers/scheduler.ts");
  await tend(ctx, { output, signal, apiUrl: localAddress(config), demonstration, enliven: () => (demonstration ? enliven(demonstration) : undefined) });
}

async function migrateTo(databaseUrl: string): Promise<void> {
  try {
    await migrate(databaseUrl);
  } catch (error) {
    if (error instanceof SchemaTooNewError) throw new CommandError(error.message);
    const { code } = error as NodeJS.ErrnoException;
    // Which server it is may stand in the message, its password never does.
    if (code) throw new CommandError(`Postgres cannot be used (${(error as Error).message || code}): see that DATABASE_URL is right and the server runs`, { cause: error });
    throw error;
  }
}

/** Makes sure whose mirror this database is; where it begins anew, so do the queues. */
async function beginOrGoOn(ctx: Context, output: Output, isDemonstration: boolean): Promise<void> {
  const claim = await claimOrigin(ctx.db, isDemonstration ? SIMULATOR : ctx.config.upstreamUrl);
  if (isDemonstration) output.line("Without UPSTREAM_URL Tain mirrors a simulated upstream, whose world begins anew at each start.");
  if (claim === "emptied") {
    output.line(isDemonstration ? "The mirror of the last start's world has been emptied." : "This database mirrored the simulator: it has been emptied for the real upstream.");
  }
  // A job of the old world would be done in the new one. With Redis away there is no telling; it says so itself.
  if ((claim === "emptied" || isDemonstration) && ctx.redis.status === "ready") await emptyQueues(ctx);
}

async function emptyQueues(ctx: Context): Promise<void> {
  const queues = openQueues(ctx);
  try {
    for (const queue of Object.values(queues)) await queue.obliterate({ force: true });
  } finally {
    await closeQueues(queues);
  }
}

async function answersReady(config: Config, signal: AbortSignal): Promise<void> {
  const url = `${localAddress(config)}/-/ready`;
  const deadline = Date.now() + WEB_PATIENCE_MS;
  let last = "no answer";
  while (Date.now() < deadline) {
    signal.throwIfAborted();
    // Whether it listens can be learned only by asking.
    const answer = await fetch(url, { signal: AbortSignal.timeout(3_000) }).catch((error: Error) => error);
    if (answer instanceof Response) {
      const body = (await answer.json()) as { ready: boolean; missing?: string[] };
      if (body.ready) return;
      last = body.missing?.join("; ") ?? `status ${answer.status}`;
    }
    await delay(25, undefined, { signal });
  }
  throw new CommandError(`The API is not ready after ${WEB_PATIENCE_MS / 1_000} s: ${last}`);
}

/** By which a caller on this machine reaches us. */
function localAddress({ host, port }: Pick<Config, "host" | "port">): string {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

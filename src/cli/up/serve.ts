import { migrate } from "../../../db/migrate.ts";
import { openLogins } from "../../../db/roles.ts";
import { type Config, parseConfig } from "../../config.ts";
import { type Context, openContext } from "../../context.ts";
import { rootReasonOf } from "../../failure.ts";
import { claimOrigin, SIMULATOR } from "../../sync/following/origin.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { CommandError } from "../terminal/command.ts";
import { JsonObject } from "../terminal/json.ts";
import type { Output } from "../terminal/output.ts";
import type { Demonstration } from "./demonstration.ts";
import { inSentences } from "./migrate.ts";
import { type ProcessTree, STOP_SHARES } from "./process-tree.ts";
import { tend } from "./tend.ts";

export interface Serving {
  /** The environment of every process, still without the demonstration's upstream. */
  env: NodeJS.ProcessEnv;
  /** The demonstration's upstream, once it listens; null: upstream is a real one. */
  demonstrating: Promise<Demonstration> | null;
  tree: ProcessTree;
  output: Output;
  signal: AbortSignal;
}

/** Migrates the database, starts the processes and tends the mirror, until the signal aborts. */
export async function serve({ env: given, demonstrating, tree, output, signal }: Serving): Promise<void> {
  const url = given.DATABASE_DIRECT_URL ?? given.DATABASE_URL ?? "";
  await inSentences(migrate(url, (line) => output.note(`tain: ${line}`)));
  const demonstration = await demonstrating;
  const env = demonstration
    ? { ...given, UPSTREAM_URL: demonstration.url, UPSTREAM_TOKEN: demonstration.token }
    : given;
  const config = parseConfig(env);
  await using resources = new AsyncDisposableStack();
  // With --json, log lines would stand among the documents.
  const ctx = await openContext(output.json ? { ...config, logLevel: "silent" } : config, resources, {
    name: "up",
    isCommand: true,
  });
  const isEmbedded = given.TAIN_POSTGRES === "embedded";
  await beginOrGoOn(ctx, output, { isDemonstration: demonstration !== null, isEmbedded });
  signal.throwIfAborted();

  // Only the embedded database gets logins for roles. A given database may be shared, and its owner decides about
  // logins.
  const logins = isEmbedded ? await openLogins(config.databaseUrl) : null;
  const start = (name: "web" | "worker" | "scheduler", entry: string) => {
    const databaseUrl = logins?.[name === "web" ? "web" : "worker"];
    const stopWithinMs = Math.round(config.shutdownMs * STOP_SHARES[name]);
    // The process must give up and log that shortly before it would be killed.
    const next = name === "scheduler" && config.metricsPort !== null ? config.metricsPort + 1 : null;
    const metricsPort = next === null ? {} : { METRICS_PORT: String(next) };
    const limit = `${Math.max(100, stopWithinMs - 200)}ms`;
    tree.start({
      name,
      entry: new URL(entry, import.meta.url),
      env: { ...env, ...(databaseUrl && { DATABASE_URL: databaseUrl }), ...metricsPort, SHUTDOWN_TIMEOUT: limit },
      stopWithinMs,
    });
  };
  start("web", "../../web.ts");
  const apiUrl = localAddress(config);
  await untilReady(ctx, { apiUrl, operatorToken: config.operatorToken, signal });
  output.document({ event: "serving", apiUrl });
  start("worker", "../../../workers/main.ts");
  start("scheduler", "../../../workers/scheduler.ts");
  await tend(ctx, { output, signal, apiUrl, demonstration });
}

/** Makes sure that this database is a mirror of this upstream. If the mirror begins anew, so do the queues. */
async function beginOrGoOn(
  ctx: Context,
  output: Output,
  { isDemonstration, isEmbedded }: { isDemonstration: boolean; isEmbedded: boolean },
): Promise<void> {
  const upstream = isDemonstration ? SIMULATOR : ctx.config.upstreamUrl;
  const claim = await claimOrigin(ctx, upstream, { isOurs: isEmbedded });
  if (isDemonstration)
    output.line("Without UPSTREAM_URL Tain mirrors a simulated upstream, whose world begins anew at each start.");
  if (claim === "emptied") {
    output.line(
      isDemonstration
        ? "The mirror of the last start's world has been emptied."
        : "This database mirrored the simulator: it has been emptied for the real upstream.",
    );
  }
  if (claim === "emptied" || isDemonstration) await emptyQueues(ctx);
}

/** Removes the jobs, since a job of the old world would otherwise run in the new one. */
async function emptyQueues({ queues, redis }: Context): Promise<void> {
  if (redis.status !== "ready")
    throw new CommandError("Redis cannot be reached: see that REDIS_URL is right and the server runs");
  for (const queue of Object.values(queues)) await queue.obliterate({ force: true });
}

/** @throws CommandError that says what is missing, if the process does not become ready in time */
async function untilReady(
  { random }: Pick<Context, "random">,
  { apiUrl, operatorToken, signal }: Pick<Config, "operatorToken"> & { apiUrl: string; signal: AbortSignal },
): Promise<void> {
  const waits = new Waits({ policy: RETRIES.apiReady, random, signal });
  let lacking: string | null;
  do {
    signal.throwIfAborted();
    lacking = await lackingAt(apiUrl, operatorToken);
    if (lacking === null) return;
  } while (await waits.next());
  throw new CommandError(`The API is not ready after ${RETRIES.apiReady.withinMs / 1_000} s: ${lacking}`);
}

/** What the API lacks, in words. Null: it is ready. */
export async function lackingAt(apiUrl: string, operatorToken: Config["operatorToken"]): Promise<string | null> {
  const headers = { authorization: `Bearer ${operatorToken}` };
  // Only a request shows whether the process listens.
  const answer = await fetch(`${apiUrl}/-/ready`, { headers, signal: AbortSignal.timeout(3_000) }).catch(
    (error: Error) => error,
  );
  if (!(answer instanceof Response)) return `no answer (${rootReasonOf(answer)})`;
  if (answer.ok) return null;
  const text = await answer.text();
  return answer.status === 503 ? JsonObject.parse(text).strings("missing").join("; ") : `status ${answer.status}`;
}

/** The address for callers on this machine. */
function localAddress({ host, port }: Pick<Config, "host" | "port">): string {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

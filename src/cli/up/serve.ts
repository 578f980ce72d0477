import { parseConfig } from "../../config.ts";
import { openContext } from "../../context.ts";
import type { Output } from "../terminal/output.ts";
import { beginOrGoOn, migrateFirst } from "./begin.ts";
import type { Demonstration } from "./demonstration.ts";
import { type ProcessTree, STOP_SHARES, stopLimit } from "./process-tree.ts";
import { localAddress, untilReady } from "./ready.ts";
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

/** Migrates the database, starts the processes, each by itself, and tends the mirror, until the signal aborts. */
export async function serve({ env: given, demonstrating, tree, output, signal }: Serving): Promise<void> {
  await migrateFirst(given, output);
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
  const databases = await beginOrGoOn(ctx, output, { isDemonstration: demonstration !== null, isEmbedded });
  signal.throwIfAborted();

  const start = (name: "web" | "worker" | "scheduler", entry: string) => {
    const databaseUrl = databases[name === "web" ? "web" : "worker"];
    const stopWithinMs = Math.round(config.shutdownMs * STOP_SHARES[name]);
    const next = name === "scheduler" && config.metricsPort !== null ? config.metricsPort + 1 : null;
    const metricsPort = next === null ? {} : { METRICS_PORT: String(next) };
    tree.start({
      name,
      entry: new URL(entry, import.meta.url),
      env: { ...env, DATABASE_URL: databaseUrl, ...metricsPort, SHUTDOWN_TIMEOUT: stopLimit({ stopWithinMs }) },
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

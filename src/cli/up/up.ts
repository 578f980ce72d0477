import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Config, parseConfig } from "../../config.ts";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { aborted } from "../../operations/shutdown.ts";
import { type Command, CommandError, type Given } from "../terminal/command.ts";
import { newSecret, readInstance } from "../terminal/instance.ts";
import type { Output } from "../terminal/output.ts";
import { startDemonstration } from "./demonstration.ts";
import { ProcessTree, STOP_SHARES } from "./process-tree.ts";

export const up: Command = {
  name: "up",
  about: `
Runs the API with the webhook receiver, the workers and the scheduler, in one process or
each in its own (PROCESSES), and mirrors what REPOSITORIES and \`tain add\` name at UPSTREAM_URL.

Without UPSTREAM_URL it demonstrates itself: a simulated upstream, with a few thousand
issues and pull requests and about one change a second, is mirrored instead. Its world, and
the mirror of it, begin anew at each start.

Needs DATABASE_URL and REDIS_URL (\`npm start\` brings both) and writes what other programs
need to know to TAIN_HOME/instance.json. The processes log warnings and worse, unless
LOG_LEVEL says otherwise. SIGTERM or Ctrl-C stops everything in good order.`,
  run: runUp,
};

/**
 * How long this process's own work may take to finish after a request to stop. The other processes get their time after
 * that.
 */
const FINISH_MS = 2_000;

async function runUp({ env }: Given, output: Output): Promise<number> {
  const isDemonstration = wantsDemonstration(env);
  const stopping = new AbortController();
  let stopCode = 0;
  // Work that waits throws this. By its name it has ended, and has not failed.
  const stop = (why: string) => stopping.abort(new DOMException(why, "AbortError"));
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stop(name));
  // If our parent opened a channel, we must stop when it dies.
  if (process.connected) {
    process.on("disconnect", () => stop("the parent process has gone"));
    process.channel?.unref();
  }

  const { env: settled, config } = await completeEnvironment(env, isDemonstration);
  const tree = new ProcessTree((line) => output.note(`tain: ${line}`));
  void tree.failed.then((reason) => {
    if (stopping.signal.aborted) return;
    if (reason !== null) output.note(`tain: ${reason}`);
    stopCode = 1;
    stop(reason ?? "the instance cannot start");
  });
  let isStuck = false;
  try {
    const demonstrating = isDemonstration
      ? startDemonstration(tree, { stopWithinMs: config.shutdownMs * STOP_SHARES.simulator })
      : null;
    demonstrating?.catch(() => {}); // The error is reported where the promise is awaited.
    // What serves with processes of their own is loaded only for that, since this process keeps its memory.
    const start =
      config.processes === "one" ? (await import("./serve-in-one.ts")).serveInOne : (await import("./serve.ts")).serve;
    const serving = start({ env: settled, demonstrating, tree, output, signal: stopping.signal });
    serving.catch(() => {}); // The error is reported below, unless the stop comes first.
    isStuck = (await Promise.race([serving, late(stopping.signal)])) === "late";
  } catch (error) {
    // An error that only follows from the stop, or from the end of a process, is not reported.
    if (!stopping.signal.aborted) throw error;
    if (env.TAIN_DEBUG) console.error(error);
  } finally {
    if (stopping.signal.aborted) output.line("Stopping …");
    const killed = await tree.stop();
    if (killed.length > 0) {
      output.note(
        `tain: not finished in time, and so ended by force: ${killed.join(", ")} (SHUTDOWN_TIMEOUT says how long they have)`,
      );
      stopCode = 1;
    }
  }
  // Without this exit, an unanswered request to upstream would keep the process alive until its time-out.
  if (isStuck) process.exit(stopCode);
  return stopCode;
}

/** Resolves some time after the signal has aborted. */
async function late(signal: AbortSignal): Promise<"late"> {
  await aborted(signal);
  return await delay(FINISH_MS, "late", { ref: false });
}

/** @throws CommandError if the environment names neither the demonstration nor an upstream clearly */
function wantsDemonstration(env: NodeJS.ProcessEnv): boolean {
  if (env.UPSTREAM_URL) return false;
  if (env.NODE_ENV === "production") {
    throw new CommandError(
      "With NODE_ENV=production there is no demonstration: set DATABASE_URL, REDIS_URL, UPSTREAM_URL and UPSTREAM_TOKEN",
    );
  }
  const set = ["UPSTREAM_TOKEN", "APP_ID"].find((name) => env[name]);
  if (set) {
    throw new CommandError(
      `${set} is set and UPSTREAM_URL is not: set it to https://api.github.com (or https://HOST/api/v3), or unset ${set === "APP_ID" ? "the App" : "the token"} for the demonstration`,
    );
  }
  return true;
}

/** The environment of every process, still without the demonstration's upstream: valid, with a port and secrets. */
async function completeEnvironment(
  env: NodeJS.ProcessEnv,
  isDemonstration: boolean,
): Promise<{ env: NodeJS.ProcessEnv; config: Config }> {
  const before = await readInstance({ home: env.TAIN_HOME?.trim() || ".tain" });
  const secret = env.WEBHOOK_SECRET || before?.webhookSecret || newSecret();
  const encryptionKey = env.ENCRYPTION_KEY || before?.encryptionKey || newSecret();
  const operatorToken = env.OPERATOR_TOKEN || before?.operatorToken || newSecret();
  const secrets = { WEBHOOK_SECRET: secret, ENCRYPTION_KEY: encryptionKey, OPERATOR_TOKEN: operatorToken };
  const settled = { ...env, ...secrets, LOG_LEVEL: env.LOG_LEVEL || "warn" };
  // Settings that the simulator gives later get placeholders, so that all other problems are reported now.
  const config = parseConfig(
    isDemonstration ? { ...settled, UPSTREAM_URL: "http://127.0.0.1:1", UPSTREAM_TOKEN: "later" } : settled,
  );
  return { env: { ...settled, PORT: String(await freePort(config)), TAIN_HOME: config.home }, config };
}

/** The configured port, if it is free. For 0, any free port. */
async function freePort({ host, port }: Pick<Config, "host" | "port">): Promise<number> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), "listening");
    const address = probe.address();
    return typeof address === "object" && address ? address.port : port;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EADDRINUSE")
      throw new CommandError(
        `Port ${port} is taken by another program: set PORT to a free one (e.g. PORT=${port + 1}), or end that program`,
      );
    if (code === "EACCES")
      throw new CommandError(`This user may not listen on port ${port}: set PORT to one above 1023`);
    throw new CommandError(
      `It is not possible to listen on ${host}, port ${port} (${rootReasonOf(error)}): set HOST to an address of this machine`,
    );
  } finally {
    probe.close();
  }
}

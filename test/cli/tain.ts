import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Instance } from "../../src/cli/terminal/instance.ts";
import type { Status } from "../../src/health/status.ts";
import { PATIENCE_MS } from "../support/bounds.ts";
import { inherited } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { until } from "../support/patience.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** A `tain` that runs; its output as it comes. */
export class Run {
  readonly pid: number;
  readonly exited: Promise<Ended>;
  stdout = "";
  stderr = "";
  readonly #child: ReturnType<typeof spawn>;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(process.execPath, [main, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.pid = this.#child.pid as number;
    this.#child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      this.stdout += chunk;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      this.stderr += chunk;
    });
    this.exited = once(this.#child, "close").then(([code, by]) => {
      if (by) throw new Error(`tain ${args.join(" ")} was ended by ${by}`);
      return { code: code as number, stdout: this.stdout, stderr: this.stderr };
    });
    this.exited.catch(() => {});
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Waits until it has said something that matches, on either stream. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    const find = () => pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
    const holds = async () => {
      if (this.#child.exitCode !== null && !find())
        throw new Error(`tain has ended (${this.#child.exitCode}) and too early`);
      return find() !== null;
    };
    await until(`tain says ${pattern}`, holds).catch((error: Error) => {
      throw new Error(`${error.message}\nIt said:\n${this.stdout}\n${this.stderr}`, { cause: error });
    });
    return find() as RegExpExecArray;
  }
}

/** A home, a database and a Redis of its own, and the `tain`s that are run on them. */
export class Tain {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly #drop: (failed?: boolean) => Promise<void>;
  readonly #runs: Run[] = [];

  private constructor(home: string, env: NodeJS.ProcessEnv, drop: (failed?: boolean) => Promise<void>) {
    this.home = home;
    this.env = env;
    this.#drop = drop;
  }

  static async open(env: NodeJS.ProcessEnv = {}): Promise<Tain> {
    const home = await mkdtemp(join(tmpdir(), "tain-cli-"));
    const database = await openTestDatabase();
    const redis = testRedis();
    const stores = { DATABASE_URL: database.url, REDIS_URL: redis.url, REDIS_PREFIX: redis.prefix };
    const own = { ...inherited, TAIN_HOME: home, HOST: "127.0.0.1", PORT: String(await freePort()) };
    return new Tain(home, { ...stores, ...own, ...env }, database.drop);
  }

  start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Run {
    const run = new Run(args, { ...this.env, ...env });
    this.#runs.push(run);
    return run;
  }

  async run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
    return await this.start(args, env).exited;
  }

  async instance(): Promise<Instance> {
    return JSON.parse(await readFile(join(this.home, "instance.json"), "utf8")) as Instance;
  }

  async status(): Promise<Status> {
    const { apiUrl, operatorToken } = await this.instance();
    const headers = { authorization: `Bearer ${operatorToken}` };
    return (await (await fetch(`${apiUrl}/-/status`, { headers })).json()) as Status;
  }

  /** Ends the `tain`s that still run, and lets go of the stores. */
  async close({ failed = false } = {}): Promise<void> {
    for (const run of this.#runs) {
      run.signal("SIGTERM");
      const ended = await Promise.race([run.exited.catch(() => null), delay(PATIENCE_MS, "late" as const)]);
      if (ended === "late") {
        for (const pid of await descendants(run.pid)) process.kill(pid, "SIGKILL");
        run.signal("SIGKILL");
      }
    }
    await this.#drop(failed);
    await rm(this.home, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The processes below a process, with the files that they run: pid to command line. */
export async function family(pid: number): Promise<Map<number, string>> {
  const { stdout } = await promisify(execFile)("ps", ["-eo", "pid=,ppid=,stat=,args="]);
  const all = stdout.split("\n").flatMap((line) => {
    const [, own, parent, state = "", args = ""] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return own && !state.startsWith("Z") ? [{ pid: Number(own), parent: Number(parent), args }] : [];
  });
  const found = new Map<number, string>();
  for (const queue = [pid]; queue.length > 0; ) {
    const parent = queue.shift();
    for (const child of all.filter((each) => each.parent === parent)) {
      found.set(child.pid, child.args);
      queue.push(child.pid);
    }
  }
  return found;
}

async function descendants(pid: number): Promise<number[]> {
  return [...(await family(pid)).keys()];
}

export async function isAlive(pid: number): Promise<boolean> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "stat=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout.trim() !== "" && !stdout.startsWith("Z");
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  return typeof address === "object" && address ? address.port : 0;
}

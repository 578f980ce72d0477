import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryDirectories } from "../../scripts/temporary.mjs";

const script = fileURLToPath(new URL("../../scripts/run.mjs", import.meta.url));
const fixtureApp = fileURLToPath(new URL("fixture-app.ts", import.meta.url));

/** What the fixture app told: the name of the event and what came with it. */
export type Told = { event: string; pid: number } & Record<string, unknown>;

/** A launcher at work. It is killed, and what it started is stopped, when the test lets go of its home. */
export class Launcher {
  readonly child: ChildProcess;
  readonly exited: Promise<number | NodeJS.Signals>;
  /** No process is left that could tell anything. */
  readonly #silent: Promise<unknown>;
  stdout = "";
  stderr = "";

  constructor(command: string, args: string[], env: NodeJS.ProcessEnv, cwd?: string) {
    this.child = spawn(command, args, { env, ...(cwd !== undefined && { cwd }), stdio: ["ignore", "pipe", "pipe"] });
    this.child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      this.stdout += chunk;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      this.stderr += chunk;
    });
    this.#silent = once(this.child, "close");
    this.exited = once(this.child, "exit").then(([code, by]) => code ?? by);
  }

  /** Waits until the app has told of the event. */
  async told(event: string): Promise<Told> {
    for (;;) {
      for (const line of this.stdout.split("\n")) {
        if (line.startsWith("{") && line.endsWith("}")) {
          const told = JSON.parse(line) as Told;
          if (told.event === event) return told;
        }
      }
      const more = this.child.stdout ? once(this.child.stdout, "data") : Promise.reject(new Error("no stdout"));
      const outcome = await Promise.race([more, this.#silent.then(() => this.exited)]);
      if (!Array.isArray(outcome))
        throw new Error(`The launcher ended (${outcome}) before "${event}":\n${this.stderr}`);
    }
  }

  async stop(): Promise<number | NodeJS.Signals> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    return await this.exited;
  }
}

/** A state directory of its own, and the launchers started on it. */
export class Home implements AsyncDisposable {
  readonly path: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #launchers: Launcher[] = [];

  private constructor(path: string, env: NodeJS.ProcessEnv) {
    this.path = path;
    this.#env = env;
  }

  /** `env` is given to every launcher; with undefined a variable is taken away. */
  static async open(env: NodeJS.ProcessEnv = {}): Promise<Home> {
    const path = await newPlace();
    // Set to nothing rather than left out: a developer's own .env does not replace what is set.
    const unset = { DATABASE_URL: "", REDIS_URL: "", NODE_ENV: "", TEST_DATABASE_URL: "", TEST_REDIS_URL: "" };
    const clean = {
      ...process.env,
      ...unset,
      UPSTREAM_URL: "",
      UPSTREAM_TOKEN: "",
      TAIN_HOME: path,
      TAIN_APP_ENTRY: fixtureApp,
    };
    return new Home(path, { ...clean, ...env });
  }

  /**
   * Another home with what is in this one, whose launchers have ended: to make a cluster is half of what a first start
   * costs.
   */
  async copy(): Promise<Home> {
    const path = await newPlace();
    // Keeps whose files they are.
    await promisify(execFile)("cp", ["-Rp", `${this.path}/.`, path]);
    return new Home(path, { ...this.#env, TAIN_HOME: path });
  }

  run(args: string[], env: NodeJS.ProcessEnv = {}): Launcher {
    return this.#keep(new Launcher(process.execPath, [script, ...args], { ...this.#env, ...env }));
  }

  /** As npm runs a script: below a shell, which does not pass signals on. */
  throughShell(args: string[]): Launcher {
    const command = [process.execPath, script, ...args].map((word) => `'${word}'`).join(" ");
    return this.#keep(
      new Launcher("/bin/sh", ["-c", `${command}; exit $?`], { ...this.#env, npm_lifecycle_event: "start" }),
    );
  }

  #keep(launcher: Launcher): Launcher {
    this.#launchers.push(launcher);
    return launcher;
  }

  async json(name: string): Promise<Record<string, unknown>> {
    return JSON.parse(await readFile(join(this.path, name), "utf8")) as Record<string, unknown>;
  }

  /** Stops what a failed test has left: its launchers, and the stores of a killed one by adopting them once more. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const launcher of this.#launchers) await launcher.stop();
    if (existsSync(join(this.path, "stores.json"))) {
      const last = this.run(["start"]);
      await Promise.race([last.told("started").catch(() => undefined), last.exited]);
      await last.stop();
    }
    await rm(this.path, { recursive: true, force: true });
  }
}

async function newPlace(): Promise<string> {
  const [place = ""] = await temporaryDirectories();
  const path = await mkdtemp(join(place, "tain-home-"));
  // Root runs Postgres as another user, who must be able to pass through.
  await chmod(path, 0o711);
  return path;
}

/** Whether a server listens on the port of the address. */
export async function answers(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** An ended process that its parent has not collected yet (a zombie) does not run. */
export async function isRunning(pid: number): Promise<boolean> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "stat=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout.trim() !== "" && !stdout.startsWith("Z");
}

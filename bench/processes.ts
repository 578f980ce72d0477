import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { profileFlags } from "./profile.ts";

/** A server in a process of its own. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Without a trailing slash. */
  readonly url: string;
  /** Seconds of CPU that it has used since it was started. */
  cpuSeconds(): Promise<number>;
  /** Bytes, as the kernel counts them. */
  residentBytes(): Promise<number>;
  /** Sends a message that a module which was loaded before it understands, and waits for its answer. */
  ask(message: string): Promise<unknown>;
}

/** What a server tells its starter; see `announce`. */
type Told = { listening: string } | { cpuSeconds: number; residentBytes: number } | Record<string, unknown>;

/** Starts a file of this folder that calls `announce`, with these settings beside PATH alone. */
export async function startServer(
  file: string,
  env: Record<string, string>,
  flags: readonly string[] = [],
): Promise<ServerProcess> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [], {
    execArgv: [...profileFlags(), ...flags],
    env: { PATH: process.env.PATH, ...env } as NodeJS.ProcessEnv,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const { listening } = (await told(child, file)) as { listening: string };
  const ask = (message: string) => {
    child.send(message);
    return told(child, file);
  };
  const usage = async () => (await ask("usage")) as { cpuSeconds: number; residentBytes: number };
  return {
    pid: child.pid as number,
    url: listening,
    cpuSeconds: async () => (await usage()).cpuSeconds,
    residentBytes: async () => (await usage()).residentBytes,
    ask,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** A program of the project, as its users start it. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Resolves to how it ended, in words. */
  readonly ended: Promise<string>;
}

/**
 * Starts a file, named from this folder, with these settings beside PATH alone. `onLine` is given each line that it
 * prints.
 */
export function startProgram(
  file: string,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void = (line) => console.error(line),
  args: readonly string[] = [],
): Program {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return startCommand(process.execPath, [...profileFlags(), path, ...args], { name: file, env, onLine });
}

/** Starts a program of the system. `name` is what it is called where it ends. */
export function startCommand(
  command: string,
  args: readonly string[],
  { name = command, env = {}, onLine }: { name?: string; env?: NodeJS.ProcessEnv; onLine: (line: string) => void },
): Program {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  createInterface({ input: child.stdout }).on("line", onLine);
  const ended = once(child, "exit").then(([code, signal]) => `${name} ended (${code ?? signal})`);
  return {
    pid: child.pid as number,
    ended,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** Bytes that a process holds in memory now, and the most that it ever held, as Linux counts them. */
export async function residentBytesOf(pid: number): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1_024;
  return { now: bytes("VmRSS"), peak: bytes("VmHWM") };
}

const TICKS_PER_SECOND = 100;

/** Of these processes since each began, as the kernel counts it. */
export async function cpuSecondsOf(pids: readonly number[]): Promise<number> {
  let ticks = 0;
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")")).split(" ");
    ticks += Number(fields[12]) + Number(fields[13]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** @throws Error when the process ends instead */
async function told(child: ChildProcess, file: string): Promise<Told> {
  const over = new AbortController();
  const ended = once(child, "exit", { signal: over.signal }).then(([code, signal]) => {
    throw new Error(`bench/${file} ended (${code ?? signal}) before it was asked to`);
  });
  try {
    const [message] = (await Promise.race([once(child, "message", { signal: over.signal }), ended])) as [Told];
    return message;
  } finally {
    over.abort();
    ended.catch(() => {});
  }
}

/**
 * Called by a server in its own process once it listens: tells its starter, and ends when it is told to, or left alone.
 */
export function announce(listening: string, close: () => Promise<void> = async () => {}): void {
  process.on("message", (message) => {
    if (message !== "usage") return;
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuSeconds: (user + system) / 1e6, residentBytes: process.memoryUsage.rss() });
  });
  const end = async () => {
    await close();
    process.exit();
  };
  process.once("SIGTERM", () => void end());
  process.once("disconnect", () => void end());
  process.send?.({ listening });
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { inherited } from "./config.ts";
import { asRole } from "./database.ts";
import { until } from "./patience.ts";

/** A line of a program's log. A line that is no JSON, as in a crash's stack, becomes `msg` with level 60. */
type LogLine = { level: number; msg: string } & Record<string, unknown>;

/**
 * One of Tain's programs, in a process group of its own. It is killed at the latest when the test that started it has
 * finished.
 */
export interface Program {
  readonly pid: number;
  readonly lines: LogLine[];
  /** Resolves to the exit code, or to the name of the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  readonly hasExited: boolean;
  /** `kill -9` of the program and of everything that it started, at one moment. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Answers as `exited` does. */
  stop(): Promise<number | NodeJS.Signals>;
  /** The first line with this message. Waits until the program has logged it. */
  said(message: string): Promise<LogLine>;
  /** The most memory that was ever resident at once, in bytes. Linux only. */
  peakResidentBytes(): Promise<number>;
}

/** The Postgres role of a program, by the program's path or its folder. */
const ROLES: Record<string, string> = { "src/web.ts": "tain_web", workers: "tain_worker" };

interface ProgramOptions {
  nodeFlags?: readonly string[];
  /**
   * Gets the function that kills the program. It is for a program that serves several tests, because the end of a test
   * does not end it.
   */
  atEnd?: (kill: () => Promise<void>) => void;
}

export function startProgram(
  entry: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
  options: ProgramOptions = {},
): Program {
  const role = ROLES[entry.split("/", 2).join("/")] ?? ROLES[entry.split("/")[0] ?? ""];
  const limited = role && env.DATABASE_URL ? { ...env, DATABASE_URL: asRole(env.DATABASE_URL, role) } : env;
  return startProgramAt(fileURLToPath(new URL("../../", import.meta.url)), entry, limited, args, options);
}

/** Starts a program of another checkout, as the user that `env` names. */
export function startProgramAt(
  place: string,
  entry: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
  { nodeFlags = [], atEnd = onTestFinished }: ProgramOptions = {},
): Program {
  const child = spawn(process.execPath, [...nodeFlags, join(place, entry), ...args], {
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${entry} cannot be run`);
  const lines: LogLine[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => lines.push(parseLine(line)));
  }
  let hasExited = false;
  const exited = once(child, "exit").then(([code, by]) => {
    hasExited = true;
    return (code ?? by) as number | NodeJS.Signals;
  });
  const kill = async () => {
    // The whole group is killed, because what a killed parent has started may outlive it.
    signalGroup(pid, "SIGKILL");
    await exited;
  };
  atEnd(kill);
  return {
    pid,
    lines,
    exited,
    get hasExited() {
      return hasExited;
    },
    kill,
    stop: () => {
      child.kill("SIGTERM");
      return exited;
    },
    said: async (message) => {
      const find = () => lines.find((line) => line.msg.includes(message));
      await until(`${entry} says "${message}"`, async () => {
        if (hasExited && !find()) throw new Error(`${entry} has ended and said only ${JSON.stringify(lines)}`);
        return find() !== undefined;
      });
      return find() as LogLine;
    },
    peakResidentBytes: async () => {
      const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
      if (!kib) throw new Error(`Process ${pid} tells nothing of its memory`);
      return Number(kib) * 1_024;
    },
  };
}

function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch (error) {
    if (error instanceof SyntaxError) return { level: 60, msg: line };
    throw error;
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // No process of the group is left.
  }
}

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { until } from "../support/patience.ts";

/** A bot in a process of its own, which says what it does in lines of JSON. */
export interface Bot extends AsyncDisposable {
  url: string;
  /** Resolves once it has said something with this key. */
  heard(key: string): Promise<unknown>;
}

/** @param folder where Probot is installed */
export async function openProbot(folder: string, program: string, env: NodeJS.ProcessEnv): Promise<Bot> {
  const child = spawn(process.execPath, [program, folder], { env, stdio: ["ignore", "pipe", "pipe"] });
  const said: Record<string, unknown>[] = [];
  let complaints = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("{")) said.push(JSON.parse(line));
  });
  child.stderr.on("data", (text) => {
    complaints += text;
  });
  const heard = async (key: string) => {
    await until(`Probot says ${key}`, () => {
      if (child.exitCode !== null) throw new Error(`Probot ended: ${complaints}`);
      return said.some((line) => key in line);
    }).catch((error: unknown) => {
      throw new Error(`${error}: ${JSON.stringify(said)} ${complaints}`);
    });
    return said.find((line) => key in line)?.[key];
  };
  return {
    url: `http://127.0.0.1:${await heard("port")}`,
    heard,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGKILL");
      await closed;
    },
  };
}

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A server of the Model Context Protocol, which is spoken in lines of JSON. */
export interface Mcp extends AsyncDisposable {
  /** The result; an error is thrown. */
  ask(method: string, params: object): Promise<unknown>;
  tell(method: string): void;
}

interface Said {
  id?: number;
  result?: unknown;
  error?: { message: string };
}

export function openMcp(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Mcp {
  const child = spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"] });
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  let complaints = "";
  let asked = 0;
  child.stderr.on("data", (text) => {
    complaints += text;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, result, error }: Said = JSON.parse(line);
    const answer = waiting.get(id ?? 0);
    waiting.delete(id ?? 0);
    if (error) answer?.reject(new Error(error.message));
    else answer?.resolve(result);
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  void closed.then(() => {
    for (const { reject } of waiting.values()) reject(new Error(`The server ended: ${complaints}`));
  });
  const send = (message: object) => void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  return {
    ask(method, params) {
      const id = ++asked;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        send({ id, method, params });
      });
    },
    tell: (method) => send({ method }),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      child.kill("SIGTERM");
      await closed;
    },
  };
}

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/** Which scripts a process of Node's runs, by its inspector. */
export interface Coverage extends AsyncDisposable {
  /** The addresses of the scripts that ran since the last call. */
  take(): Promise<string[]>;
}

interface ScriptCoverage {
  url: string;
  functions: { ranges: { count: number }[] }[];
}

const PATIENCE_MS = 60_000;

/** For a process that was started with `--inspect`, or soon will be. @throws Error when nothing listens in time */
export async function openCoverage(port: number): Promise<Coverage> {
  const socket = new WebSocket(await debuggerAt(port));
  await once(socket, "open");
  let sent = 0;
  const call = async (method: string, params: object = {}): Promise<unknown> => {
    sent += 1;
    const id = sent;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const listen = ({ data }: MessageEvent) => {
      const answer = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } };
      if (answer.id !== id) return;
      socket.removeEventListener("message", listen);
      if (answer.error) reject(new Error(`${method}: ${answer.error.message}`));
      else resolve(answer.result);
    };
    socket.addEventListener("message", listen);
    socket.send(JSON.stringify({ id, method, params }));
    return await promise;
  };
  await call("Profiler.enable");
  await call("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    async take() {
      const { result } = (await call("Profiler.takePreciseCoverage")) as { result: ScriptCoverage[] };
      return result
        .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
        .map(({ url }) => url);
    },
    async [Symbol.asyncDispose]() {
      socket.close();
    },
  };
}

async function debuggerAt(port: number): Promise<string> {
  const asked = Date.now();
  for (;;) {
    try {
      const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
        webSocketDebuggerUrl: string;
      }[];
      if (targets[0]) return targets[0].webSocketDebuggerUrl;
    } catch (error) {
      if ((error as { cause?: { code?: string } }).cause?.code !== "ECONNREFUSED") throw error;
    }
    if (Date.now() - asked > PATIENCE_MS) throw new Error(`No inspector listens at port ${port}`);
    await delay(100);
  }
}

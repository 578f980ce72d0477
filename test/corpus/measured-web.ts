import { fileURLToPath } from "node:url";
import { Agent, fetch } from "undici";
import type { Holds } from "../support/insides.ts";
import { startProgram } from "../support/program.ts";

const WARN = 40;

/** One request of the corpus. */
export interface Fuzz {
  name: string;
  method: string;
  path: string;
  body?: string;
  headers?: Record<string, string>;
}

/** The outcome of one request, with how long it held the event loop. */
export interface Measured extends Holds {
  name: string;
  status: number;
  text: string;
}

export interface MeasuredWeb extends AsyncDisposable {
  ask(fuzz: Fuzz): Promise<Measured>;
}

/** A web process as it is started in production, which tells for how long each request holds its event loop. */
export async function startMeasuredWeb(env: NodeJS.ProcessEnv, token: string): Promise<MeasuredWeb> {
  const flags = ["--import", fileURLToPath(new URL("../support/insides.ts", import.meta.url))];
  await using resources = new AsyncDisposableStack();
  const web = startProgram("src/web.ts", { ...env, LOG_LEVEL: "info" }, [], {
    nodeFlags: flags,
    atEnd: (kill) => resources.defer(kill),
  });
  // No type can say what a line of the log holds.
  const { address } = (await web.said("Listening")) as unknown as { address: string };
  const { port } = (await web.said("Insides")) as unknown as { port: number };
  const dispatcher = new Agent({ bodyTimeout: 0, headersTimeout: 0 });
  const holds = async () => (await (await fetch(`http://127.0.0.1:${port}`, { dispatcher })).json()) as Holds;
  const started = resources.move();
  return {
    [Symbol.asyncDispose]: () => started.disposeAsync(),
    async ask({ name, method, path, body, headers = {} }) {
      try {
        await holds();
        const answer = await fetch(address + path, {
          method,
          headers: { "User-Agent": "test", Authorization: `Bearer ${token}`, ...headers },
          body: body ?? null,
          redirect: "manual",
          dispatcher,
        });
        const text = await answer.text();
        return { name, status: answer.status, text, ...(await holds()) };
      } catch (cause) {
        const said = JSON.stringify(web.lines.filter(({ level }) => web.hasExited || level >= WARN).slice(-20));
        throw new Error(`No answer to ${name}; the web process ${web.hasExited ? "has ended" : "goes on"}: ${said}`, {
          cause,
        });
      }
    },
  };
}

import { fileURLToPath } from "node:url";
import { Agent, fetch } from "undici";
import type { Database } from "../../db/database.ts";
import type { Holds } from "../support/insides.ts";
import { startProgram } from "../support/program.ts";
import { type Costs, costsOf } from "./costs.ts";

const WARN = 40;

/** One request of the corpus. */
export interface Fuzz {
  name: string;
  method: string;
  path: string;
  body?: string;
  headers?: Record<string, string>;
  /** Cuts the body into pieces of so many bytes, each sent by itself. */
  pieces?: number;
}

/** The outcome of one request, with how long it held the event loop. */
export interface Measured extends Holds, Partial<Costs> {
  name: string;
  status: number;
  text: string;
}

export interface MeasuredWeb extends AsyncDisposable {
  /** Where it listens. */
  address: string;
  ask(fuzz: Fuzz): Promise<Measured>;
}

/**
 * A web process as it is started in production, which tells for how long each request holds its event loop.
 * @param db its database; with it each request's memory and time of Postgres are measured too
 */
export async function startMeasuredWeb(
  env: NodeJS.ProcessEnv,
  token: string,
  db?: Pick<Database, "query">,
): Promise<MeasuredWeb> {
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
  const costs = db && costsOf(web.pid, db);
  const started = resources.move();
  return {
    address,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
    async ask({ name, method, path, body, headers = {}, pieces }) {
      try {
        await holds();
        const measured = await costs?.();
        const answer = await fetch(address + path, {
          method,
          headers: { "User-Agent": "test", Authorization: `Bearer ${token}`, ...headers },
          body: pieces && body !== undefined ? cut(body, pieces) : (body ?? null),
          duplex: "half",
          redirect: "manual",
          dispatcher,
        });
        const text = await answer.text();
        return { name, status: answer.status, text, ...(await holds()), ...(await measured?.()) };
      } catch (cause) {
        const said = JSON.stringify(web.lines.filter(({ level }) => web.hasExited || level >= WARN).slice(-20));
        throw new Error(`No answer to ${name}; the web process ${web.hasExited ? "has ended" : "goes on"}: ${said}`, {
          cause,
        });
      }
    },
  };
}

function* cut(body: string, bytes: number): Generator<Buffer> {
  const all = Buffer.from(body);
  for (let at = 0; at < all.length; at += bytes) yield all.subarray(at, at + bytes);
}

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "../../src/json.ts";
import { GITHUB } from "./exchanges.ts";

interface AskedOfReplay {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

interface Replayed {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body: Json | undefined;
}

/** A server that gives recorded answers again, with its own address in place of GitHub's. */
export interface Replay extends AsyncDisposable {
  url: string;
}

export async function openReplay(answer: (asked: AskedOfReplay) => Replayed): Promise<Replay> {
  const server = createServer(async (request, response) => {
    let sent = "";
    for await (const piece of request) sent += String(piece);
    const { method = "", url: path = "", headers: asked } = request;
    const { status, headers, body } = answer({ method, path, headers: asked, body: sent });
    const isEmpty = body === undefined || body === null || body === "";
    const shown = { "content-type": "application/json; charset=utf-8", ...headers };
    for (const [name, value] of Object.entries(shown)) response.setHeader(name, value.replaceAll(GITHUB, url));
    response.writeHead(status).end(isEmpty ? "" : JSON.stringify(body).replaceAll(GITHUB, url));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}

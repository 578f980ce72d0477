import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { until } from "../support/patience.ts";

interface Heard {
  headers: IncomingHttpHeaders;
  body: string;
  event: string;
  guid: string;
  /** The document, whatever it travels in. */
  // biome-ignore lint/suspicious/noExplicitAny: bodies are compared and picked from, not trusted
  payload: any;
}

/** Answers a request. Undefined: 200. */
type Answering = (heard: Heard, reply: ServerResponse) => unknown;

/** A target: an HTTP server that hears of events. */
export interface TargetServer extends AsyncDisposable {
  url: string;
  /** In the order of arrival, whatever was answered; without pings. */
  heard: Heard[];
  pings: Heard[];
  /** What is done with a request from now on. Default: 200. */
  answer: Answering | null;
  /** Waits until so many have been heard. */
  hears(count: number): Promise<void>;
}

export async function openTargetServer(): Promise<TargetServer> {
  const server = createServer((request, reply) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString("utf8");
      const isForm = request.headers["content-type"] === "application/x-www-form-urlencoded";
      const heard: Heard = {
        headers: request.headers,
        body,
        event: String(request.headers["x-github-event"]),
        guid: String(request.headers["x-github-delivery"]),
        payload: JSON.parse((isForm ? new URLSearchParams(body).get("payload") : body) ?? ""),
      };
      (heard.event === "ping" ? target.pings : target.heard).push(heard);
      const answered = heard.event === "ping" ? undefined : target.answer?.(heard, reply);
      if (answered === undefined) reply.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The target listens nowhere");
  const target: TargetServer = {
    url: `http://127.0.0.1:${address.port}/hook`,
    heard: [],
    pings: [],
    answer: null,
    hears: (count) => until(`the target hears ${count}`, async () => target.heard.length >= count),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return target;
}

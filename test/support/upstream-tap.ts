import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Context } from "../../src/context.ts";
import { type Fields, objectOf } from "../../src/json.ts";
import { openUpstream } from "../../src/upstream/client/client.ts";

/** One request of the mirror and how upstream answered it. */
export interface Exchange {
  method: string;
  /** The path with its query. */
  path: string;
  body: string;
  /** null until upstream has answered. */
  status: number | null;
  /** `performance.now()` when the request arrived, and when the mirror had its whole answer; null before that. */
  arrivedAt: number;
  answeredAt: number | null;
}

/** Stands between the mirror and upstream, and sees each request with its query and body. */
export interface UpstreamTap extends AsyncDisposable {
  /** The address that the mirror believes to be upstream's. */
  url: string;
  exchanges: Exchange[];
  /** Changes the data of each GraphQL answer on its way. */
  changeData: ((data: Fields) => void) | null;
  /** Resolves as soon as the `nth` matching request from now on has been answered, down to the last byte. */
  answered(matches: (exchange: Exchange) => boolean, nth?: number): Promise<Exchange>;
  /** Does the same, but keeps upstream's answer back, so that the client goes on waiting. */
  withheld(matches: (exchange: Exchange) => boolean, nth?: number): Promise<Exchange>;
}

interface Watch {
  matches: (exchange: Exchange) => boolean;
  left: number;
  withholds: boolean;
  resolve: (exchange: Exchange) => void;
}

export async function openTap(upstreamUrl: string): Promise<UpstreamTap> {
  const exchanges: Exchange[] = [];
  const watches = new Set<Watch>();
  const server = createServer((request, response) => {
    relay(request, response).catch((error: Error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  /** Upstream's answers name its own address. The tap's takes its place. */
  const rebased = (text: string) => text.replaceAll(upstreamUrl, url);

  const changed = (path: string, text: string) => {
    if (!path.endsWith("/graphql") || !tap.changeData) return text;
    const answer = objectOf(JSON.parse(text));
    tap.changeData(objectOf(answer.data));
    return JSON.stringify(answer);
  };

  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = "GET", url: path = "/" } = request;
    const body = Buffer.concat(chunks).toString("utf8");
    const exchange: Exchange = { method, path, body, status: null, arrivedAt: performance.now(), answeredAt: null };
    exchanges.push(exchange);
    const {
      host: _host,
      "accept-encoding": _encoding,
      connection: _connection,
      "content-length": _length,
      "transfer-encoding": _transfer,
      ...headers
    } = request.headers;
    const answer = await fetch(`${upstreamUrl}${path}`, {
      method,
      headers: { ...(headers as Record<string, string>), "accept-encoding": "identity" },
      body: exchange.body === "" ? null : exchange.body,
      redirect: "manual",
    });
    const text = changed(path, rebased(await answer.text()));
    exchange.status = answer.status;
    const watch = [...watches].find((one) => one.matches(exchange) && --one.left === 0);
    if (watch) watches.delete(watch);
    if (watch?.withholds) return watch.resolve(exchange);
    const bare = [...answer.headers].filter(
      ([name]) => !["connection", "keep-alive", "content-length", "transfer-encoding"].includes(name),
    );
    response.writeHead(answer.status, Object.fromEntries(bare.map(([name, value]) => [name, rebased(value)])));
    response.end(text, () => {
      exchange.answeredAt = performance.now();
      watch?.resolve(exchange);
    });
  }

  const watch = (matches: Watch["matches"], left: number, withholds: boolean) =>
    new Promise<Exchange>((resolve) => watches.add({ matches, left, withholds, resolve }));
  const tap: UpstreamTap = {
    url,
    exchanges,
    changeData: null,
    answered: (matches, nth = 1) => watch(matches, nth, false),
    withheld: (matches, nth = 1) => watch(matches, nth, true),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return tap;
}

/** The same context, which asks upstream through a tap. */
export async function openTapped(ctx: Context): Promise<AsyncDisposable & { ctx: Context; tap: UpstreamTap }> {
  const tap = await openTap(ctx.config.upstreamUrl);
  const upstream = openUpstream({ ...ctx, config: { ...ctx.config, upstreamUrl: tap.url } });
  return {
    ctx: { ...ctx, upstream },
    tap,
    [Symbol.asyncDispose]: async () => {
      await upstream.close();
      await tap[Symbol.asyncDispose]();
    },
  };
}

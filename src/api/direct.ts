import type { IncomingMessage, ServerResponse } from "node:http";
import type { Way } from "../operations/front.ts";
import type { ApiContext } from "./call.ts";
import { type Outgoing, sendDirectly } from "./dialect/reply.ts";
import type { RestEndpoint } from "./rest/endpoint.ts";

/**
 * Answers each GET that one of our operations answers. It needs nothing of what the app does for a request: it has no body,
 * its route is known, and its address is the socket's. All else is passed on.
 */
export class DirectReads {
  readonly #ctx: ApiContext;
  readonly #rest: RestEndpoint;
  readonly #failed: (error: unknown, url: string) => Outgoing;

  constructor(
    ctx: ApiContext,
    { rest, failed }: { rest: RestEndpoint; failed: (error: unknown, url: string) => Outgoing },
  ) {
    this.#ctx = ctx;
    this.#rest = rest;
    this.#failed = failed;
  }

  take(request: IncomingMessage, response: ServerResponse, way: Way): void {
    const { method, url = "/", headers, socket } = request;
    const isPlain = method === "GET" && !hasBody(headers) && !this.#isForwarded(headers);
    const target = isPlain ? this.#rest.find(method, url) : null;
    if (!target?.match) {
      way.pass(request, response);
      return;
    }
    const asked = {
      method: "GET",
      url,
      headers,
      ip: socket.remoteAddress ?? "",
      protocol: "encrypted" in socket ? ("https" as const) : ("http" as const),
      host: headers.host ?? "",
      body: undefined,
      raw: request,
    };
    this.#rest
      .answer(asked, target)
      .catch((error: unknown) => this.#failed(error, url))
      .then((answer) => sendDirectly(request, response, answer, way))
      .catch((error: unknown) => {
        this.#ctx.log.error({ err: error, path: target.path }, "An answer could not be sent");
        response.destroy();
      });
  }

  /** What a proxy says of the caller is judged by the app. */
  #isForwarded(headers: IncomingMessage["headers"]): boolean {
    return (
      this.#ctx.config.trustedProxies.length > 0 &&
      (headers["x-forwarded-for"] ?? headers["x-forwarded-proto"] ?? headers["x-forwarded-host"]) !== undefined
    );
  }
}

function hasBody(headers: IncomingMessage["headers"]): boolean {
  return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}

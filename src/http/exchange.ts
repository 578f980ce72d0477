import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { TracedSpan } from "../operations/tracing.ts";
import type { TrustedProxies } from "./addresses.ts";
import { type BodyBudget, type HeldBody, TooManyPiecesError } from "./body.ts";

/** RFC 9112: a client that believes us to be a proxy sends the whole address, and is to be answered, too. */
const ORIGIN = /^https?:\/\/[^/?]*/i;

/** A request, and what can be known of its caller. */
export class Exchange {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly requestTarget: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Where its trace is told; null: it is not. */
  span: TracedSpan | null = null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #proxies: TrustedProxies;
  readonly #bodies: BodyBudget;
  /** The rest of its body is not read, so the connection ends behind the answer. */
  isCut = false;
  #gone: AbortSignal | null = null;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { proxies, bodies }: { proxies: TrustedProxies; bodies: BodyBudget },
  ) {
    this.#request = request;
    this.#response = response;
    this.#proxies = proxies;
    this.#bodies = bodies;
    this.method = request.method ?? "GET";
    const url = request.url ?? "/";
    this.requestTarget = url.startsWith("/") ? url : url.replace(ORIGIN, "") || "/";
    const at = this.requestTarget.indexOf("?");
    this.path = at < 0 ? this.requestTarget : this.requestTarget.slice(0, at);
    this.headers = request.headers;
  }

  /** What follows the question mark. */
  get search(): string {
    return this.requestTarget.slice(this.path.length + 1);
  }

  /** Fires once the caller has gone away before the whole answer was sent. */
  get gone(): AbortSignal {
    if (this.#gone) return this.#gone;
    const controller = new AbortController();
    const abort = () => {
      if (!this.#response.writableFinished) controller.abort();
    };
    if (this.#response.closed) abort();
    else this.#response.once("close", abort);
    this.#gone = controller.signal;
    return controller.signal;
  }

  /** The address at the other end of the connection: the caller's, or a proxy's. */
  get peer(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  /** The caller's address. The word of trusted proxies counts, from the nearest to the farthest. */
  get address(): string {
    const said = this.headers["x-forwarded-for"];
    return said === undefined ? this.peer : this.#proxies.callersAddress(this.#request.socket, said);
  }

  /** The protocol that the caller speaks. TLS ends at a proxy. */
  get protocol(): string {
    return this.#forwarded("x-forwarded-proto") ?? "http";
  }

  /** The name and port that the caller asks for. */
  get host(): string {
    return this.#forwarded("x-forwarded-host") ?? this.headers.host ?? "";
  }

  /**
   * The body, within the server's memory for bodies.
   * @param sender whose share it takes; absent: that of the address. Null: senders are not told apart
   * @throws HttpError as `BodyBudget.read`
   */
  async body(maxBytes: number, sender: string | null = this.address): Promise<HeldBody> {
    try {
      return await this.#bodies.read(this.#request, maxBytes, sender);
    } catch (error) {
      if (error instanceof TooManyPiecesError) this.isCut = true;
      throw error;
    }
  }

  /** What the nearest proxy says, if it is trusted. */
  #forwarded(name: string): string | undefined {
    const said = this.headers[name];
    return said === undefined ? undefined : this.#proxies.nearestSays(this.#request.socket, said);
  }
}

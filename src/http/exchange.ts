import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { BlockList, isIP, type Socket } from "node:net";
import type { TracedSpan } from "../operations/tracing.ts";
import { HttpError } from "./errors.ts";

/** RFC 9112: a client that believes us to be a proxy sends the whole address, and is to be answered, too. */
const ORIGIN = /^https?:\/\/[^/?]*/i;

/** As they came, with names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** A request, and what can be known of its caller. */
export class Exchange {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly target: string;
  readonly path: string;
  /** What follows the question mark. */
  readonly search: string;
  /** Where its trace is told; null: it is not. */
  span: TracedSpan | null = null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #proxies: TrustedProxies;
  #gone: AbortSignal | null = null;

  constructor(request: IncomingMessage, response: ServerResponse, proxies: TrustedProxies) {
    this.#request = request;
    this.#response = response;
    this.#proxies = proxies;
    this.method = request.method ?? "GET";
    const url = request.url ?? "/";
    this.target = url.startsWith("/") ? url : url.replace(ORIGIN, "") || "/";
    const at = this.target.indexOf("?");
    this.path = at < 0 ? this.target : this.target.slice(0, at);
    this.search = at < 0 ? "" : this.target.slice(at + 1);
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers;
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
    if (!this.#isFromProxy) return this.peer;
    const senders = text(this.headers["x-forwarded-for"])
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean);
    let address = senders.pop() ?? this.peer;
    while (senders.length > 0 && this.#proxies.includes(address)) address = senders.pop() ?? address;
    return address;
  }

  /** The protocol that the caller speaks. TLS ends at a proxy. */
  get protocol(): string {
    return this.#forwarded("x-forwarded-proto") ?? "http";
  }

  /** The name and port that the caller asks for. */
  get host(): string {
    return this.#forwarded("x-forwarded-host") ?? this.headers.host ?? "";
  }

  /** @throws HttpError 413 when there are more than `maxBytes`, 400 when the sender went away before the end */
  body(maxBytes: number, following?: Following): Promise<Buffer> {
    return readBody(this.#request, maxBytes, following);
  }

  get #isFromProxy(): boolean {
    return this.#proxies.isAtTheEndOf(this.#request.socket);
  }

  /** What the nearest proxy says, if it is trusted. */
  #forwarded(name: string): string | undefined {
    const said = this.#isFromProxy ? text(this.headers[name]) : "";
    if (said === "") return undefined;
    return said.slice(said.lastIndexOf(",") + 1).trim();
  }
}

function text(header: string | readonly string[] | undefined): string {
  return typeof header === "string" ? header : (header ?? []).join(",");
}

const NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** Some IP addresses. */
export class AddressList {
  readonly #list = new BlockList();

  /** @param names addresses, networks (`10.0.0.0/8`), `loopback`, `linklocal` and `uniquelocal` */
  constructor(names: readonly string[]) {
    for (const name of names.flatMap((one) => NETWORKS[one] ?? one)) {
      const [written = "", bits] = name.split("/");
      const { address, family, isMapped } = read(written);
      if (bits === undefined) this.#list.addAddress(address, family);
      // A network of IPv4 addresses that is written as IPv6 counts the 96 bits in front of them, too.
      else this.#list.addSubnet(address, Number(bits) - (isMapped ? 96 : 0), family);
    }
  }

  /** False for what is no address. */
  includes(written: string): boolean {
    const { address, family } = read(written);
    return isIP(address) !== 0 && this.#list.check(address, family);
  }
}

/** The proxies that say who calls. */
export class TrustedProxies {
  readonly #list: AddressList;
  /** Whose other end is a proxy: it stays the same, and to look it up for each request takes 0.3 µs. */
  readonly #known = new WeakMap<Socket, boolean>();

  /** @param names as an `AddressList` takes them */
  constructor(names: readonly string[]) {
    this.#list = new AddressList(names);
  }

  includes(address: string): boolean {
    return this.#list.includes(address);
  }

  isAtTheEndOf(socket: Socket): boolean {
    const known = this.#known.get(socket);
    if (known !== undefined) return known;
    const isProxy = this.#list.includes(socket.remoteAddress ?? "");
    this.#known.set(socket, isProxy);
    return isProxy;
  }
}

/** An IPv4 address that is written as IPv6, as sockets of both families do, is the IPv4 address. */
function read(written: string): { address: string; family: "ipv4" | "ipv6"; isMapped: boolean } {
  const address = written.replace(/^::ffff:(?=\d+\.)/i, "");
  return { address, family: isIP(address) === 6 ? "ipv6" : "ipv4", isMapped: address !== written };
}

const EMPTY = Buffer.alloc(0);

/** Who follows how a body arrives. */
export interface Following {
  /** Is called with the size of each piece, before it is kept. */
  onPiece: (bytes: number) => void;
  /** Ends the reading, with its reason as the error. What was read is let go at once. */
  signal: AbortSignal;
}

/**
 * The exact bytes of the request's body.
 * @throws HttpError 413 when there are more than `maxBytes`, 400 when the sender went away before the end
 */
function readBody(request: IncomingMessage, maxBytes: number, following?: Following): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Node.js reads and drops what is left unread once we have answered, so the sender gets to see the answer.
    const tooLarge = () => reject(new HttpError(413, "Request body is too large"));
    if (request.readableEnded) return resolve(EMPTY);
    if (Number(request.headers["content-length"]) > maxBytes) return tooLarge();

    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return settle(tooLarge);
      following?.onPiece(chunk.length);
      if (!following?.signal.aborted) chunks.push(chunk);
    };
    const onAbort = () =>
      settle(() => {
        chunks.length = 0;
        reject(following?.signal.reason);
      });
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)));
    const onCut = () => settle(() => reject(new HttpError(400, "The body ended before all of it had arrived")));
    const settle = (outcome: () => void) => {
      request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
      following?.signal.removeEventListener("abort", onAbort);
      // An error that follows (the sender resets while we answer) has nothing to tell any more.
      request.on("error", () => {});
      outcome();
    };
    following?.signal.addEventListener("abort", onAbort);
    request.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
  });
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const CONTENT_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(;|$)`);

/** Whether a Content-Type names a type and a subtype, as RFC 9110 writes them. */
export function isContentType(header: string): boolean {
  return CONTENT_TYPE.test(header);
}

/**
 * The rough size of a piece of a body beside its bytes: each is an object with memory of its own. A body that is sent
 * byte by byte would else hold a hundred times what is counted.
 */
const PIECE_BYTES = 256;

/** A whole body. Its bytes count until it is disposed of. */
export interface HeldBody extends Disposable {
  readonly bytes: Buffer;
}

/** A body under way. */
interface ArrivingBody {
  heldBytes: number;
  readonly ending: AbortController;
}

/**
 * Bounds the memory that bodies of requests take in a process. Bytes that have arrived count until the request is
 * answered. Announced bytes do not count, so an announcement takes nothing from others. When there is no room, the body
 * that has been arriving for the longest is given up: a small one, which comes in one piece, is never that.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #patienceMs: number;
  #heldBytes = 0;
  /** Bodies that have arrived in part, the oldest first. */
  readonly #arriving = new Set<ArrivingBody>();

  constructor({ maxBytes, patienceMs }: { maxBytes: number; patienceMs: number }) {
    this.#maxBytes = maxBytes;
    this.#patienceMs = patienceMs;
  }

  /** The bytes that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Reads a body of at most `maxBytes`.
   * @throws HttpError 503 when there is no room for it, 408 when it has not arrived in time, and as `Exchange.body`
   */
  async read(exchange: Exchange, maxBytes: number): Promise<HeldBody> {
    const body: ArrivingBody = { heldBytes: 0, ending: new AbortController() };
    const late = () => this.#giveUp(body, new HttpError(408, "The body has not arrived in time"));
    const timer = setTimeout(late, this.#patienceMs);
    try {
      const onPiece = (bytes: number) => this.#take(body, bytes + PIECE_BYTES);
      const bytes = await exchange.body(maxBytes, { onPiece, signal: body.ending.signal });
      return { bytes, [Symbol.dispose]: () => this.#release(body) };
    } catch (error) {
      this.#release(body);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#arriving.delete(body);
    }
  }

  #take(body: ArrivingBody, bytes: number): void {
    this.#arriving.add(body);
    body.heldBytes += bytes;
    this.#heldBytes += bytes;
    for (const oldest of this.#arriving) {
      if (this.#heldBytes <= this.#maxBytes) return;
      this.#giveUp(oldest, new HttpError(503, "There is no room for the body at the moment"));
    }
  }

  #giveUp(body: ArrivingBody, reason: HttpError): void {
    this.#arriving.delete(body);
    this.#release(body);
    body.ending.abort(reason);
  }

  #release(body: ArrivingBody): void {
    this.#heldBytes -= body.heldBytes;
    body.heldBytes = 0;
  }
}

/** Null: its percent-encoding is none of text. */
export function decoded(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

export function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

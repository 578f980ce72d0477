import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { BlockList, isIP, type Socket } from "node:net";
import type { TracedSpan } from "../operations/tracing.ts";
import { type BodyBudget, type HeldBody, RequestBody } from "./body.ts";

/** RFC 9112: a client that believes us to be a proxy sends the whole address, and is to be answered, too. */
const ORIGIN = /^https?:\/\/[^/?]*/i;

/** As they came, with names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

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
  #gone: AbortSignal | null = null;

  constructor(request: IncomingMessage, response: ServerResponse, proxies: TrustedProxies) {
    this.#request = request;
    this.#response = response;
    this.#proxies = proxies;
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
    if (!this.#isFromProxy) return this.peer;
    const senders = headerText(this.headers["x-forwarded-for"])
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
  body(maxBytes: number): Promise<Buffer> {
    return new RequestBody(this.#request, maxBytes).whole;
  }

  /** The body, for which the budget has room. @throws HttpError as `BodyBudget.read` */
  bodyWithin(budget: BodyBudget, maxBytes: number): Promise<HeldBody> {
    return budget.read(this.#request, maxBytes);
  }

  get #isFromProxy(): boolean {
    return this.#proxies.isAtTheEndOf(this.#request.socket);
  }

  /** What the nearest proxy says, if it is trusted. */
  #forwarded(name: string): string | undefined {
    const said = this.#isFromProxy ? headerText(this.headers[name]) : "";
    if (said === "") return undefined;
    return said.slice(said.lastIndexOf(",") + 1).trim();
  }
}

/** The header as one line, if it came more than once. Empty: it did not come. */
export function headerText(header: string | readonly string[] | undefined): string {
  return typeof header === "string" ? header : (header ?? []).join(",");
}

/** The text without its percent-encoding. Null: what is encoded is no UTF-8. */
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

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const CONTENT_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(;|$)`);

/** Whether a Content-Type names a type and a subtype, as RFC 9110 writes them. */
export function isContentType(header: string): boolean {
  return CONTENT_TYPE.test(header);
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
      const { address, family, isMapped } = readAddress(written);
      if (bits === undefined) this.#list.addAddress(address, family);
      // An IPv4 network may be written as IPv6 (`::ffff:10.0.0.0/104`). Its prefix is then 96 bits longer.
      else this.#list.addSubnet(address, Number(bits) - (isMapped ? 96 : 0), family);
    }
  }

  /** False for what is no address. */
  includes(written: string): boolean {
    const { address, family } = readAddress(written);
    return isIP(address) !== 0 && this.#list.check(address, family);
  }
}

/** The proxies that say who calls. */
export class TrustedProxies {
  readonly #list: AddressList;
  /** Whether a connection comes from a proxy. That cannot change, and judging it takes 0.3 µs for each request. */
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
function readAddress(written: string): { address: string; family: "ipv4" | "ipv6"; isMapped: boolean } {
  const address = written.replace(/^::ffff:(?=\d+\.)/i, "");
  return { address, family: isIP(address) === 6 ? "ipv6" : "ipv4", isMapped: address !== written };
}

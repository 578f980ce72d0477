import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { Dispatcher, Pool } from "undici";
import { codeOf } from "../../failure.ts";
import { type Tracing, traceHeaders, UNTRACED } from "../../operations/tracing.ts";
import { VERSION } from "../../version.ts";
import { type OutageKind, UpstreamUnavailableError } from "./errors.ts";
import type { UpstreamHeaders } from "./headers.ts";
import type { Opened } from "./opened.ts";
import { isSafePath, pathFormOf, UnsafePathError } from "./paths.ts";

export interface TransportLimits {
  connections: number;
  connectTimeoutMs: number;
  /** From the request to the first byte of the answer. GitHub gives up by itself after 10 s. */
  headersTimeoutMs: number;
  /** Between two pieces of the body. */
  bodyTimeoutMs: number;
  /** For the whole exchange, against an answer that trickles in without end. */
  totalTimeoutMs: number;
  /** The largest body, unpacked; -1: any size, for forwarded bodies. A hundred full issues are some 7 MB. */
  maxBodyBytes: number;
}

/** For a single question with a small answer. */
export const ONE_REQUEST: TransportLimits = {
  connections: 1,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 15_000,
  bodyTimeoutMs: 15_000,
  totalTimeoutMs: 30_000,
  maxBodyBytes: 1024 * 1024,
};

/** Headers that name us in every request. The version is that of the dialect that the mirror stores. */
export const OWN_HEADERS = {
  accept: "application/vnd.github+json",
  "user-agent": `tain/${VERSION}`,
  "x-github-api-version": "2022-11-28",
};

export interface TransportRequest {
  method: string;
  path: string;
  /** The path is not below the base: GraphQL of an enterprise server. */
  isAbsolute?: boolean;
  headers: Record<string, string>;
  body?: string | Buffer | null;
  /** Answers a success before its body has arrived. */
  isOpened?: true;
  signal?: AbortSignal | undefined;
}

/** One answer, whatever its status, with its body unpacked. */
export interface Received {
  status: number;
  /** Names in lower case. */
  headers: UpstreamHeaders;
  text: string;
  /** The body as it came, if it was gzipped. */
  packed?: Buffer;
  /** The arriving body of a success, if `isOpened` was set; `text` is then empty. As in `Opened`. */
  body?: Readable;
}

/** Sends single requests over a bounded pool of connections. Repeats nothing and judges no status. */
export class Transport {
  readonly #origin: string;
  readonly #basePath: string;
  readonly #host: string;
  readonly #limits: TransportLimits;
  readonly #tracing: Tracing;
  /** Null: nothing was sent yet. */
  #opened: Promise<Pool> | null = null;
  #isClosed = false;

  /** @param base the address that every path is below, without a slash at its end */
  constructor(base: string, limits: TransportLimits, tracing: Tracing = UNTRACED) {
    const { origin, hostname, pathname } = new URL(base);
    this.#host = hostname;
    this.#basePath = pathname.replace(/\/+$/, "");
    this.#limits = limits;
    this.#tracing = tracing;
    this.#origin = origin;
  }

  #pool(): Promise<Pool> {
    if (this.#isClosed) throw new Error("The connections to upstream are closed");
    this.#opened ??= openHttpPool(this.#origin, this.#limits);
    return this.#opened;
  }

  /**
   * @throws UpstreamUnavailableError when no complete answer arrives
   * @throws UnsafePathError, before anything is sent
   * @throws the signal's reason when it is aborted
   */
  async send(request: TransportRequest): Promise<Received> {
    return await this.#ask(request, request.isOpened ? "identity" : "gzip", async (answer) => {
      const { statusCode: status, headers, body } = answer;
      if (request.isOpened && status < 300) {
        body.on("error", () => {});
        return { status, headers, text: "", body };
      }
      const packed = Buffer.from(await body.arrayBuffer());
      if (headers["content-encoding"] !== "gzip" || packed.length === 0)
        return { status, headers, text: packed.toString("utf8") };
      const unpacked = await gunzipAsync(packed, { maxOutputLength: this.#limits.maxBodyBytes });
      return { status, headers, text: unpacked.toString("utf8"), packed };
    });
  }

  /**
   * As `send`, and answers as soon as the answer begins. The signal ends the body, too.
   * @throws as `send`
   */
  async open(request: TransportRequest): Promise<Opened> {
    return await this.#ask(request, "identity", async ({ statusCode, headers, body }) => {
      // A reader of the body gets its error. After a destroy nobody listens, so the error has to be caught here.
      body.on("error", () => {});
      return { status: statusCode, headers, body };
    });
  }

  async #ask<T>(
    request: TransportRequest,
    encoding: "gzip" | "identity",
    read: (answer: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    if (!this.#tracing.isOn) return await this.#sent(request, encoding, read);
    const { method, path, headers } = request;
    const route = pathFormOf(path);
    const attributes = { "http.request.method": method, "url.template": route, "server.address": this.#host };
    const about = () => ({ kind: "client", attributes }) as const;
    return await this.#tracing.within(`${method} ${route}`, about, (span) =>
      this.#sent({ ...request, headers: { ...headers, ...traceHeaders(this.#tracing) } }, encoding, (answer) => {
        span.setAttributes({ "http.response.status_code": answer.statusCode });
        if (answer.statusCode >= 500) span.failed(String(answer.statusCode));
        return read(answer);
      }),
    );
  }

  async #sent<T>(
    request: TransportRequest,
    encoding: "gzip" | "identity",
    read: (answer: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    const { method, path, headers, body = null, signal } = request;
    if (!isSafePath(path)) throw new UnsafePathError(`Not sent to upstream: ${method} ${JSON.stringify(path)}`);
    const deadline = AbortSignal.timeout(this.#limits.totalTimeoutMs);
    try {
      const pool = await this.#pool();
      const answer = await pool.request({
        method,
        path: request.isAbsolute ? path : this.#basePath + path,
        headers: { ...headers, "accept-encoding": encoding },
        body,
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      return await read(answer);
    } catch (error) {
      signal?.throwIfAborted();
      const outage = outageOf(error);
      if (!outage) throw error;
      throw new UpstreamUnavailableError(`${method} ${path.split("?")[0]}: ${OUTAGE_TEXTS[outage]}`, outage, {
        cause: error,
      });
    }
  }

  /** Lets requests under way finish, and breaks off those that take longer than `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    const pool = await this.#opened;
    if (!pool || pool.closed || pool.destroyed) return;
    const timer = setTimeout(() => void pool.destroy(), graceMs);
    await pool.close().finally(() => clearTimeout(timer));
  }
}

/** Undici is a hundred modules. Many processes send nothing, and do not wait for them when they start. */
async function openHttpPool(origin: string, limits: TransportLimits): Promise<Pool> {
  const { Pool } = await import("undici");
  return new Pool(origin, {
    connections: limits.connections,
    pipelining: 1,
    // With HTTP/2, a fault of one stream would end all requests of its connection.
    allowH2: false,
    connect: { timeout: limits.connectTimeoutMs },
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.bodyTimeoutMs,
    maxResponseSize: limits.maxBodyBytes,
  });
}

const OUTAGE_TEXTS: Readonly<Record<OutageKind, string>> = {
  unreachable: "upstream cannot be reached",
  interrupted: "the connection to upstream broke off",
  "timed-out": "upstream did not answer in time",
  failed: "upstream failed",
  unreadable: "upstream's answer cannot be read",
};

/** The meaning of a network failure for the request; null if it is another kind of failure. */
function outageOf(error: unknown): OutageKind | null {
  if (!(error instanceof Error)) return null;
  if (error.name === "TimeoutError") return "timed-out";
  const code = codeOf(error) ?? "";
  const isConnecting = "syscall" in error && error.syscall === "connect";
  switch (code) {
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return "timed-out";
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "unreachable";
    case "UND_ERR_SOCKET":
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
    case "ECONNRESET":
    case "EPIPE":
    // The packed body ends too early.
    case "Z_BUF_ERROR":
      return "interrupted";
    case "UND_ERR_HEADERS_OVERFLOW":
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
    case "ERR_BUFFER_TOO_LARGE":
    case "Z_DATA_ERROR":
      return "unreadable";
    case "ETIMEDOUT":
      return isConnecting ? "unreachable" : "timed-out";
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return isConnecting ? "unreachable" : "interrupted";
    default:
      if (code.startsWith("HPE_")) return "unreadable";
      // A bad certificate ends the handshake, before anything is sent.
      return /^(EPROTO|ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code) ? "unreachable" : null;
  }
}

const gunzipAsync = promisify(gunzip);

import {
  type IncomingHttpHeaders,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";

const LINE_END = "\r\n";

/** The headers that the server gives each answer, unless the answer brings them. */
const SERVERS_OWN: ReadonlySet<string> = new Set(["connection", "date", "keep-alive", "transfer-encoding"]);

/**
 * The names that usual answers have, checked here once: checking a name takes longer than writing its line. None is the
 * server's. Other names, such as upstream's, are checked each time.
 */
export const USUAL_NAMES: ReadonlySet<string> = new Set(
  [
    ...["Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "ETag", "Last-Modified", "Vary", "Link"],
    ...["Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Content-Security-Policy", "Referrer-Policy"],
    ...["X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection"],
    ...["X-GitHub-Api-Version-Selected", "X-GitHub-Enterprise-Version", "X-GitHub-Media-Type", "X-GitHub-Request-Id"],
    ...["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Resource", "X-RateLimit-Used"],
    ...["X-OAuth-Scopes", "X-Accepted-OAuth-Scopes", "X-Accepted-GitHub-Permissions"],
    ...["X-Tain-Confirmed-At", "X-Tain-Not-Confirmed", "X-Tain-Missing", "X-Tain-Part", "X-Tain-Hint"],
    ...["Age", "Warning", "Retry-After"],
  ].map(checked),
);

/** Headers as they go over the wire. They are checked once, when they are made, and may be sent many times. */
export class HeaderLines {
  /** Each line has its end. */
  readonly text: string;
  /** Some are headers that the server would give. */
  readonly hasServersOwn: boolean;

  private constructor(text: string, hasServersOwn: boolean) {
    this.text = text;
    this.hasServersOwn = hasServersOwn;
  }

  /**
   * @param headers by their names; one that has several values has as many lines
   * @throws TypeError for a name or value that HTTP does not allow, such as one with a line break
   */
  static of(headers: Readonly<Record<string, string | readonly string[]>>): HeaderLines {
    let text = "";
    let hasServersOwn = false;
    for (const name in headers) {
      const value = headers[name] ?? "";
      if (isServersOwn(name)) hasServersOwn = true;
      if (typeof value === "string") text += line(name, value);
      else for (const one of value) text += line(name, one);
    }
    return new HeaderLines(text, hasServersOwn);
  }

  and({ text, hasServersOwn }: HeaderLines): HeaderLines {
    return new HeaderLines(this.text + text, this.hasServersOwn || hasServersOwn);
  }

  get pairs(): [name: string, value: string][] {
    const lines = this.text.split(LINE_END).slice(0, -1);
    return lines.map((one) => {
      const end = one.indexOf(": ");
      return [one.slice(0, end), one.slice(end + 2)];
    });
  }
}

function isServersOwn(name: string): boolean {
  return !USUAL_NAMES.has(name) && SERVERS_OWN.has(checked(name).toLowerCase());
}

function checked(name: string): string {
  validateHeaderName(name);
  return name;
}

function line(name: string, value: string): string {
  validateHeaderValue(name, value);
  return `${name}: ${value}${LINE_END}`;
}

/**
 * How long a connection may stay without a request. Most load balancers give one up after 60 s, and should be the
 * first.
 */
export const KEEP_ALIVE_TIMEOUT_MS = 72_000;

const KEPT_OPEN = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_TIMEOUT_MS / 1_000}\r\n`;

/**
 * A response that can send a whole answer straight to its connection. `writeHead` checks and joins the headers of each
 * answer anew, which is an eighth of what a 304 costs. Here they are checked before. All else is as for a response of
 * Node.js: `writableFinished` and the event `finish` say that the kernel has the whole answer, then the server uses the
 * connection for the next one, and `close` follows.
 *
 * What this takes from Node.js beyond its documents, to be looked at when Node.js is upgraded
 * (`test/http/direct-response.test.ts` fails if it is otherwise):
 *
 * - The server itself listens to `finish`, and to nothing else, to take a response for over.
 * - A response whose turn has not come has no `socket`.
 * - `writableFinished` is a getter on the prototype of `ServerResponse`.
 *
 * `HttpServer` takes Node.js' own `ServerResponse` in place of this class. Then each answer goes by `writeHead`.
 */
export class DirectResponse extends ServerResponse {
  /** Declared, and no field: a field would be initialised for each answer (bench/NOTES.md, not-modified). */
  declare isSentAtOnce?: true;

  /**
   * Sends the answer. False: nothing is sent, and Node.js has to send it. Then earlier answers still wait for the
   * connection, the connection closes after this one, or the headers include some that Node.js would add itself.
   * @param body null: there is none, and the headers say so
   * @param last the server's, for all of its answers
   */
  sendAtOnce(status: number, headers: HeaderLines, body: string | Buffer | null, last: LastLines): boolean {
    const { socket, req } = this;
    if (!socket || headers.hasServersOwn || req.httpVersion !== "1.1" || !isKeptOpen(req.headers)) return false;
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n${headers.text}${last.now()}`;
    if (body === null) {
      socket.write(head, "latin1");
    } else {
      socket.cork();
      socket.write(head, "latin1");
      socket.write(body);
      socket.uncork();
    }
    // Mostly the kernel has all of it by now. If the connection breaks, its end also ends the response.
    if (socket.writableLength > 0) socket.write("", (error) => !error && endAtOnce(this));
    else if (!socket.errored) endAtOnce(this);
    return true;
  }
}

// A class may not override it by a getter: the types of Node.js declare a property, where it has a getter, too.
Object.defineProperty(DirectResponse.prototype, "writableFinished", {
  get(this: DirectResponse): boolean {
    return this.isSentAtOnce === true || Reflect.get(ServerResponse.prototype, "writableFinished", this);
  },
});

function endAtOnce(response: DirectResponse): void {
  response.isSentAtOnce = true;
  response.emit("finish");
}

function isKeptOpen({ connection }: IncomingHttpHeaders): boolean {
  return connection === undefined || connection.toLowerCase() === "keep-alive";
}

/** The last lines of a head, which are the same for all answers of a second. */
export class LastLines {
  readonly #clock: { now(): Date };
  #second = 0;
  #lines = "";

  /** @param clock the one by which the answers tell other times, too: a mirror below this one compares them */
  constructor(clock: { now(): Date }) {
    this.#clock = clock;
  }

  /** Those of the present second. */
  now(): string {
    const now = Math.floor(this.#clock.now().getTime() / 1_000);
    if (now !== this.#second) {
      this.#second = now;
      this.#lines = `Date: ${new Date(now * 1_000).toUTCString()}\r\n${KEPT_OPEN}\r\n`;
    }
    return this.#lines;
  }
}

import { type IncomingHttpHeaders, ServerResponse, STATUS_CODES } from "node:http";
import type { HeaderLines } from "./header-lines.ts";

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
  #second = 0;
  #lines = "";

  /** Those of the present second. The date is that of the machine, as Node.js gives it. */
  now(): string {
    const now = Math.floor(Date.now() / 1_000);
    if (now !== this.#second) {
      this.#second = now;
      this.#lines = `Date: ${new Date(now * 1_000).toUTCString()}\r\n${KEPT_OPEN}\r\n`;
    }
    return this.#lines;
  }
}

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
 * answer anew, which is an eighth of what a 304 costs. Here they are checked before. The event `finish` says, as for
 * every response, that the kernel has the whole answer. Then the server uses the connection for the next one.
 */
export class DirectResponse extends ServerResponse {
  /** Declared, and no field: a field would be initialised for each answer (bench/NOTES.md, not-modified). */
  declare isSentAtOnce?: true;

  /** The kernel has all of it. */
  get isSent(): boolean {
    return this.isSentAtOnce === true || this.writableFinished;
  }

  /**
   * Sends the answer. False: nothing is sent, and Node.js has to send it. Then earlier answers still wait for the
   * connection, the connection closes after this one, or the headers include some that Node.js would add itself.
   * @param body null: there is none, and the headers say so
   */
  sendAtOnce(status: number, headers: HeaderLines, body: string | Buffer | null): boolean {
    const { socket, req } = this;
    if (!socket || headers.hasServersOwn || req.httpVersion !== "1.1" || !isKeptOpen(req.headers)) return false;
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n${headers.text}${lastLines()}`;
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

function endAtOnce(response: DirectResponse): void {
  response.isSentAtOnce = true;
  response.emit("finish");
}

function isKeptOpen({ connection }: IncomingHttpHeaders): boolean {
  return connection === undefined || connection.toLowerCase() === "keep-alive";
}

/** No server's own: Node.js makes the responses and hands them nothing of ours, and the second is the same for all. */
let [second, lines] = [0, ""];

/** The last lines of a head, in the present second. */
function lastLines(): string {
  const now = Math.floor(Date.now() / 1_000);
  if (now !== second) {
    second = now;
    lines = `Date: ${new Date(now * 1_000).toUTCString()}\r\n${KEPT_OPEN}\r\n`;
  }
  return lines;
}

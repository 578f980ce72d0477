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
 * answer anew, which is an eighth of what a 304 costs; here they come checked. The event `finish` says, as of every
 * response, that the kernel has all of it. By that the server knows that the connection is free for the next answer.
 */
export class DirectResponse extends ServerResponse {
  /** Declared, and no field: a field would be initialised for each answer (bench/NOTES.md, not-modified). */
  declare isSentAtOnce?: true;

  /** The kernel has all of it. */
  get isSent(): boolean {
    return this.isSentAtOnce === true || this.writableFinished;
  }

  /**
   * False: it is left to Node.js. Answers before it have not been sent, the connection is to be closed behind it, or it
   * brings headers that Node.js would give it.
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
    // Most are with the kernel by now. If the connection breaks, its end is the response's.
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

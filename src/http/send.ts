import type { ServerResponse } from "node:http";
import { compressed, type Encoding, encodingOf } from "./encoding.ts";
import type { Exchange } from "./exchange.ts";
import { isFlat, type Outlet, type Reply, type ReplyHeaders } from "./reply.ts";

/**
 * Writes a reply to the socket; a promise, where that takes time.
 * @param how.isLast the connection is closed behind it
 * @param how.unreadMs how long the caller may leave a part of it unread; a stream has its own bound
 */
export function send(
  exchange: Exchange,
  response: ServerResponse,
  reply: Reply,
  { isLast, unreadMs }: { isLast: boolean; unreadMs: number },
): Promise<void> | undefined {
  const { status, body } = reply;
  const head = flat(reply.headers);
  if (isLast) head.push("Connection", "close");
  if (reply.stream) {
    response.writeHead(status, head);
    return stream(response, reply.stream, unreadMs);
  }
  if (body === null) {
    if (exchange.method !== "HEAD" && status !== 204 && status !== 304) head.push("Content-Length", "0");
    response.writeHead(status, head);
    end(response, null, unreadMs);
    return undefined;
  }
  const encoding = encodingFor(exchange, reply);
  if (exchange.method === "HEAD") {
    // How long the body is once it is compressed is not known.
    if (encoding === null) head.push("Content-Length", String(Buffer.byteLength(body)));
    response.writeHead(status, head);
    end(response, null, unreadMs);
    return undefined;
  }
  const whole = (bytes: string | Buffer) => {
    head.push("Content-Length", String(Buffer.byteLength(bytes)));
    response.writeHead(status, head);
    if (bytes.length > WRITTEN_AT_ONCE)
      return write(response, typeof bytes === "string" ? Buffer.from(bytes) : bytes, unreadMs);
    end(response, bytes, unreadMs);
    return undefined;
  };
  if (encoding === null) return whole(body);
  head.push("Content-Encoding", encoding);
  return compressed(body, encoding, "once").then(whole);
}

/** Goes to the socket at once. More would hold the event loop for as long as the reader takes it. */
const WRITTEN_AT_ONCE = 1024 * 1024;

/** Writes a whole body, as fast as it is read. A caller who does not read would hold it in memory for ever. */
async function write(response: ServerResponse, bytes: Buffer, unreadMs: number): Promise<void> {
  let at = 0;
  for (; bytes.length - at > WRITTEN_AT_ONCE; at += WRITTEN_AT_ONCE) {
    if (response.write(bytes.subarray(at, at + WRITTEN_AT_ONCE))) continue;
    if ((await drained(response, unreadMs)) !== "drained") return void response.destroy();
  }
  end(response, bytes.subarray(at), unreadMs);
}

/** Writes the last of an answer. Node.js drops a connection on which nothing moves for that long while a part is unread. */
function end(response: ServerResponse, bytes: string | Buffer | null, unreadMs: number): void {
  response.end(bytes);
  // Most are with the kernel at once, and need no timer.
  if (response.writableLength > 0) response.setTimeout(unreadMs);
}

/** A reply to a request that was never whole, as it goes over the wire. The connection is closed behind it. */
export function rawText(reason: string, { status, headers, body }: Reply): string {
  const head = [...flat(headers), "Content-Length", String(Buffer.byteLength(body ?? "")), "Connection", "close"];
  const lines = Array.from({ length: head.length / 2 }, (_, at) => `${head[at * 2]}: ${head[at * 2 + 1]}\r\n`);
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n${body ?? ""}`;
}

/** The encoding in which this body travels; null: as it is. */
function encodingFor({ headers }: Exchange, { body, isEncodable }: Reply): Encoding | null {
  return isEncodable && body !== null ? encodingOf(body, headers["accept-encoding"]) : null;
}

/** Names and values in turn, as a list that can grow. */
function flat(headers: ReplyHeaders): string[] {
  if (isFlat(headers)) return headers;
  const lines: string[] = [];
  for (const name in headers) lines.push(name, headers[name] ?? "");
  return lines;
}

async function stream(
  response: ServerResponse,
  write: (outlet: Outlet) => Promise<void>,
  unreadMs: number,
): Promise<void> {
  try {
    await write({
      write: (piece) => response.write(piece),
      drained: (withinMs) => drained(response, withinMs),
      onClose: (listener) => {
        if (response.closed) listener();
        else response.once("close", listener);
      },
      drop: () => response.destroy(),
    });
  } finally {
    end(response, null, unreadMs);
  }
}

async function drained(response: ServerResponse, withinMs: number): ReturnType<Outlet["drained"]> {
  if (response.closed) return "gone";
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Outlet["drained"]>>>();
  const onDrain = () => resolve("drained");
  const onClose = () => resolve("gone");
  const timer = setTimeout(() => resolve("unread"), withinMs);
  response.once("drain", onDrain).once("close", onClose);
  const outcome = await promise;
  clearTimeout(timer);
  response.off("drain", onDrain).off("close", onClose);
  return outcome;
}

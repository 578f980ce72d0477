import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

/** What is asked of a server. */
export interface Load {
  /** `http://host:port`. */
  url: string;
  /** Whole requests, as they go over the wire; asked in order, and from the beginning again. */
  requests: readonly Uint8Array[];
  connections: number;
  seconds: number;
  /** Every answer must have it. */
  status: number;
  /** Where these zeros stand in a request, each gets a number that no other had. */
  numberAt?: string;
  /**
   * How many are begun in a second, however long answers take; absent: each connection asks again once it is answered.
   */
  perSecond?: number;
}

/** What came of it. */
export interface Loaded {
  answers: number;
  perSecond: number;
  /** Milliseconds, from when the request was due to its last byte. */
  p50: number;
  p99: number;
  /** Bytes of bodies. */
  bytes: number;
}

/** Asks from a thread of its own, so that what else this process does is not in the way. */
export interface Loader extends AsyncDisposable {
  /** One load at a time. @throws Error for an answer that has another status */
  load(asked: Load): Promise<Loaded>;
}

export function openLoader(): Loader {
  const worker = new Worker(new URL(import.meta.url), { execArgv: [] });
  return {
    load: async (asked) => {
      worker.postMessage(asked);
      const [{ loaded, failure }] = (await once(worker, "message")) as [{ loaded?: Loaded; failure?: string }];
      if (!loaded) throw new Error(failure);
      return loaded;
    },
    [Symbol.asyncDispose]: async () => {
      await worker.terminate();
    },
  };
}

/** A GET as it goes over the wire. */
export function getRequest(url: string, path: string, headers: Record<string, string> = {}): Uint8Array {
  const lines = Object.entries({ Host: new URL(url).host, "User-Agent": "tain-bench", ...headers });
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
}

/** A POST as it goes over the wire. */
export function postRequest(
  url: string,
  path: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Uint8Array {
  const lines = Object.entries({
    Host: new URL(url).host,
    "User-Agent": "tain-bench",
    "Content-Length": String(body.length),
    ...headers,
  });
  const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

if (!isMainThread) {
  parentPort?.on("message", (asked: Load) => {
    ask(asked).then(
      (loaded) => parentPort?.postMessage({ loaded }),
      (error: Error) => parentPort?.postMessage({ failure: error.message }),
    );
  });
}

interface Connection {
  socket: Socket;
  /** When the request under way was due; null: none is. */
  dueAt: number | null;
}

let lastNumber = 0;

async function ask({ url, requests, connections, seconds, status, perSecond, numberAt }: Load): Promise<Loaded> {
  const { hostname, port } = new URL(url);
  const places = requests.map((request) => (numberAt === undefined ? -1 : Buffer.from(request).indexOf(numberAt)));
  const latencies: number[] = [];
  let [next, bytes] = [0, 0];
  const { promise: over, resolve: finish, reject: fail } = Promise.withResolvers<void>();
  const all: Connection[] = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return { socket, dueAt: null };
    }),
  );
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  let waiting: number[] = [];
  const begin = (connection: Connection, dueAt: number) => {
    connection.dueAt = dueAt;
    const index = next % requests.length;
    let request = requests[index] as Uint8Array;
    if (numberAt !== undefined) {
      // What was written before may still wait in the socket.
      request = Buffer.from(request);
      lastNumber += 1;
      (request as Buffer).write(String(lastNumber).padStart(numberAt.length, "0"), places[index] as number, "latin1");
    }
    connection.socket.write(request);
    next += 1;
  };
  // Requests under way are still answered. Otherwise the server would work on during the next server's turn.
  const finishOnceAnswered = () => {
    if (all.every(({ dueAt }) => dueAt === null)) finish();
  };
  const answered = (connection: Connection) => {
    const now = performance.now();
    latencies.push(now - (connection.dueAt ?? now));
    connection.dueAt = null;
    if (now >= endsAt) finishOnceAnswered();
    else if (perSecond === undefined) begin(connection, now);
    else if (waiting.length > 0) begin(connection, waiting.shift() as number);
  };
  for (const connection of all) {
    connection.socket.on("error", fail);
    connection.socket.on("close", () => fail(new Error("The server closed a connection")));
    readAnswers(connection.socket, status, {
      onAnswer: (length) => {
        bytes += length;
        answered(connection);
      },
      onFault: fail,
    });
  }
  let pacing: NodeJS.Timeout | undefined;
  if (perSecond === undefined) for (const connection of all) begin(connection, startedAt);
  else {
    let [due, turn] = [0, 0];
    pacing = setInterval(() => {
      const now = performance.now();
      if (now >= endsAt) return finishOnceAnswered();
      for (; due < ((now - startedAt) / 1_000) * perSecond; due++) waiting.push(startedAt + (due * 1_000) / perSecond);
      // In turn, since Node.js closes a connection that asks for nothing.
      for (let tried = 0; tried < all.length && waiting.length > 0; tried++, turn++) {
        const connection = all[turn % all.length] as Connection;
        if (connection.dueAt === null) begin(connection, waiting.shift() as number);
      }
    }, 1);
  }
  try {
    await over;
  } finally {
    clearInterval(pacing);
    waiting = [];
    for (const { socket } of all) {
      socket.removeAllListeners("close").on("error", () => {});
      socket.destroy();
    }
  }
  const elapsed = (performance.now() - startedAt) / 1_000;
  const sorted = Float64Array.from(latencies).sort();
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
  return {
    answers: latencies.length,
    perSecond: latencies.length / elapsed,
    p50: at(0.5),
    p99: at(0.99),
    bytes,
  };
}

/** Reads no more of an answer than where it ends: a client that parsed it all would be what is measured. */
function readAnswers(
  socket: Socket,
  status: number,
  { onAnswer, onFault }: { onAnswer: (bodyBytes: number) => void; onFault: (error: Error) => void },
): void {
  /** The part of a head, or of a chunk's size, that has arrived so far. */
  let rest: Buffer | null = null;
  /** Bytes of the body that are still to come; null: before or between chunks, or in a head. */
  let left = 0;
  let length = 0;
  let isChunked = false;
  let isInBody = false;
  const expected = `HTTP/1.1 ${status}`;
  socket.on("data", (arrived: Buffer) => {
    let buffer: Buffer = rest ? Buffer.concat([rest, arrived]) : arrived;
    rest = null;
    for (;;) {
      if (!isInBody) {
        const end = buffer.indexOf("\r\n\r\n");
        if (end < 0) break;
        const head = buffer.toString("latin1", 0, end);
        if (!head.startsWith(expected))
          return onFault(new Error(`Answered ${JSON.stringify(head.slice(0, 300))} instead of ${status}`));
        buffer = buffer.subarray(end + 4);
        isChunked = /\r\ntransfer-encoding: *chunked/i.test(head);
        left = isChunked ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        length = left;
        isInBody = true;
      }
      if (isChunked) {
        if (left > 0) {
          const taken = Math.min(left, buffer.length);
          left -= taken;
          buffer = buffer.subarray(taken);
          if (left > 0) break;
        }
        const end = buffer.indexOf("\r\n");
        if (end < 0) break;
        const size = Number.parseInt(buffer.toString("latin1", 0, end), 16);
        if (size === 0) {
          if (buffer.length < end + 4) break;
          buffer = buffer.subarray(end + 4);
        } else {
          // The chunk and the end of its line.
          left = size + 2;
          length += size;
          buffer = buffer.subarray(end + 2);
          continue;
        }
      } else {
        const taken = Math.min(left, buffer.length);
        left -= taken;
        buffer = buffer.subarray(taken);
        if (left > 0) break;
      }
      isInBody = false;
      onAnswer(length);
      if (buffer.length === 0) break;
    }
    rest = buffer.length > 0 ? buffer : null;
  });
}

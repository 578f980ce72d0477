/** By their names, or as names and values in turn, which take less time to send. `send` adds to the reply's own. */
export type ReplyHeaders = Readonly<Record<string, string>> | string[];

/** What a request is answered with. */
export interface Reply {
  status: number;
  headers: ReplyHeaders;
  /** A HEAD gets its length alone. Null: there is none. */
  body: string | Buffer | null;
  /** The body travels in the encoding that the caller likes best. The headers name `Accept-Encoding` in `Vary` then. */
  isEncodable?: boolean;
  /** Writes what the caller gets instead of a body, until it settles. */
  stream?: (outlet: Outlet) => Promise<void>;
}

/** Where a stream is written. */
export interface Outlet {
  /** False: the reader has not taken what was written before, which stays in memory until they do. */
  write(piece: string | Uint8Array): boolean;
  /** Waits until the reader has taken it, for so long at most. "gone": there is no reader any more. */
  drained(withinMs: number): Promise<"drained" | "gone" | "unread">;
  /** The caller has gone, or the stream is over. */
  onClose(listener: () => void): void;
  /** Breaks off the connection, and forgets what was not read. */
  drop(): void;
}

export function isFlat(headers: ReplyHeaders): headers is string[] {
  return Array.isArray(headers);
}

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(value),
  };
}

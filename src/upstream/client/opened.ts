import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";

/**
 * Adds headers to a request for this token, once all others are known. It is shown the token, and keeps nothing of it beyond the
 * request.
 */
export type Conditional = (sent: Readonly<Record<string, string>>) => Record<string, string>;

/** One answer, whatever its status, whose body is still on its way, as upstream sends it. */
export interface Opened {
  status: number;
  /** Names in lower case. */
  headers: IncomingHttpHeaders;
  /** Read it, or destroy it: until then it holds a connection. It fails when it breaks off or takes too long. */
  body: Readable;
}

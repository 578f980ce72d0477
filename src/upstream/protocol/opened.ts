import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";

/**
 * Adds headers to a request, once all its others are known. It sees the token among them, and must not keep it beyond
 * the request.
 */
export type Conditional = (sent: Readonly<Record<string, string>>) => Record<string, string>;

/** One answer of any status, whose body is still arriving, as upstream sends it. */
export interface Opened {
  status: number;
  /** Names in lower case. */
  headers: IncomingHttpHeaders;
  /**
   * Read or destroy the body: until then it holds a connection. Reading fails when the body breaks off or takes too
   * long.
   */
  body: Readable;
}

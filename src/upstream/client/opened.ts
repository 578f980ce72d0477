import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";

/** One answer, whatever its status, whose body is still on its way, as upstream sends it. */
export interface Opened {
  status: number;
  /** Names in lower case. */
  headers: IncomingHttpHeaders;
  /** Read it, or destroy it: until then it holds a connection. It fails when it breaks off or takes too long. */
  body: Readable;
}

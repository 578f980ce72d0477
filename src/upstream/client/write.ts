import type { UpstreamHeaders } from "../protocol/headers.ts";
import type { Received, TransportRequest } from "../protocol/transport.ts";
import type { RawAnswer, WriteRequest } from "../protocol/upstream.ts";

/** The request of a write, without its credential. Pure. */
export function writeRequest(write: WriteRequest): TransportRequest {
  const { method, path, body, contentType = "application/json", accept, apiVersion, prefer } = write;
  const headers = {
    ...(body === null ? {} : { "content-type": contentType }),
    ...(accept === undefined ? {} : { accept }),
    ...(apiVersion === undefined ? {} : { "x-github-api-version": apiVersion }),
    ...(prefer === undefined ? {} : { prefer }),
  };
  return { method, path, headers, body };
}

/** Upstream's own answer to a write. Pure. */
export function rawAnswer({ status, headers, text }: Received, seenAt: Date): RawAnswer {
  return { status, headers: endToEnd(headers), body: text, seenAt };
}

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-encoding",
  "content-length",
]);

function endToEnd(headers: UpstreamHeaders): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | string[]] => entry[1] !== undefined && !HOP_BY_HOP.has(entry[0]),
    ),
  );
}

import type { IncomingMessage } from "node:http";

const MAX_BODY = 25 * 1024 * 1024;

/** The text of the body; null when it is too long. */
export async function readText(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length <= MAX_BODY) chunks.push(chunk);
  }
  return length > MAX_BODY ? null : Buffer.concat(chunks).toString("utf8");
}

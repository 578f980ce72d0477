import { ServerResponse, validateHeaderValue } from "node:http";

/** Lines of a head, ready to be sent. @throws TypeError for what no header may hold */
export function headLines(headers: Readonly<Record<string, string>>): string {
  let text = "";
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderValue(name, value);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** `_header` holds a response's head between `writeHead` and the first byte of the body. */
interface WithHead {
  _header?: unknown;
}

/** Whether this Node.js keeps the head as text, so that lines can be added to it. */
export const takesLines: boolean = (() => {
  const probe = new ServerResponse({ method: "GET", httpVersionMajor: 1, httpVersionMinor: 1 } as never);
  probe.writeHead(304, {});
  const head = (probe as WithHead)._header;
  return typeof head === "string" && head.startsWith("HTTP/1.1 304 ") && head.endsWith("\r\n\r\n");
})();

/**
 * Answers with lines that were made and checked before. A `writeHead` with twenty headers checks each of them by itself,
 * which takes longer than all the rest of a 304. Node.js writes its own lines (`Date`, `Connection`) as ever.
 */
export function sendLines(response: ServerResponse, status: number, lines: string, body: Buffer | string | null): void {
  response.writeHead(status, body === null ? {} : { "Content-Length": Buffer.byteLength(body) });
  const head = response as WithHead;
  head._header = `${(head._header as string).slice(0, -2)}${lines}\r\n`;
  if (body === null) response.end();
  else response.end(body);
}

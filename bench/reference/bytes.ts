import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { announce } from "../processes.ts";

/** The bytes of a file, from memory; to those who have them already, 304. */
const bytes = readFileSync(process.env.BYTES_FILE as string);
const tag = process.env.ETAG as string;

const server = createServer((request, response) => {
  if (request.headers["if-none-match"] === tag) return response.writeHead(304, { ETag: tag }).end();
  const headers = { "Content-Type": "application/json; charset=utf-8", "Content-Length": bytes.length, ETag: tag };
  return response.writeHead(200, headers).end(bytes);
});
server.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
